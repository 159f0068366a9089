// What the emulated GPUs of a process have been given to do: operations that wait for each other. Nothing
// runs until somebody waits for it, and of all that might run next one is drawn, so that an order which
// nobody asked for fails on some seeds.
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

// Returns false if it can't end yet, because of another process: it is called again later.
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
  // What a GPU may have done by the time that somebody asks: nothing, some, or all that `operation` needs.
  void run_some(const OperationPtr& operation);
  // Why an operation failed; all that comes after a failure fails, as after a fault of a GPU.
  const std::string& failure() const { return failure_; }

 private:
  void run_next();
  void finish(Operation& operation);

  std::mt19937 random_;
  std::vector<OperationPtr> ready_;
  std::size_t favourite_ = 0;  // queue that goes on for a while
  std::string failure_;
};

}  // namespace plumb::gpu::emulated
