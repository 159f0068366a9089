// Work enqueued on a process's emulated GPUs: operations that wait for each other. Nothing runs until
// somebody waits for it; the next operation is drawn from all that are ready, so a missing dependency fails
// on some seeds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace plumb::gpu::emulated {

// Returns false if another process keeps it from ending: it is called again later.
using Work = std::function<bool()>;

struct Operation {
  Work work;              // may be empty: a point to wait for
  std::size_t queue = 0;  // a stream's number
  std::size_t waits_for = 0;
  bool done = false;
  std::vector<std::shared_ptr<Operation>> followers;
};
using OperationPtr = std::shared_ptr<Operation>;

class Timeline {
 public:
  explicit Timeline(std::uint32_t seed) : random_(seed) {}

  OperationPtr add(Work work, std::size_t queue, std::span<const OperationPtr> after);
  void run_until(const OperationPtr& operation);
  void run_all();
  // A GPU's possible progress when queried: nothing, some, or everything that `operation` needs.
  void run_some(const OperationPtr& operation);
  // Why an operation failed. Everything after a failure fails too, as after a GPU fault.
  const std::string& failure() const { return failure_; }

 private:
  void run_next();
  void finish(Operation& operation);

  std::mt19937 random_;
  std::vector<OperationPtr> ready_;
  std::size_t favorite_ = 0;  // queue that runs ahead for a while
  std::string failure_;
};

}  // namespace plumb::gpu::emulated
