// One instruction of a Program, prepared and bound as on the CUDA device, with operands controlled by the
// test.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "kernels/cuda/binding.h"
#include "tests/cuda_host/guarded_tensor.h"

namespace plumb::cuda {

// For instructions unrelated to convolutions.
class NoConvolutions : public ConvEngine {
 public:
  std::string library() const override { return "none"; }
  std::unique_ptr<ConvCandidates> candidates(const ConvProblem& problem,
                                             std::size_t workspace_limit) override;
};

class BoundInstruction {
 public:
  explicit BoundInstruction(Graph graph = {}) : graph_(std::move(graph)) {}

  // A buffer with these values, or an unwritten one with this many elements.
  template <typename Contents>
  BufferId add(DType dtype, const Contents& contents) {
    tensors_.emplace_back(dtype, contents);
    program_.buffers.push_back({.dtype = dtype,
                                .dims = {static_cast<std::int64_t>(tensors_.back().elements())},
                                .bytes = tensors_.back().elements() * bytes_of(dtype),
                                .persistent = true});
    return program_.buffers.size() - 1;
  }
  BufferId add(DType dtype, std::initializer_list<double> values) {
    return add(dtype, std::vector<double>(values));
  }
  // A device object, such as its State, as raw bytes.
  template <typename T>
  BufferId add_object(const T& object) {
    const BufferId id = add(DType::u8, sizeof(T));
    *tensors_.back().as<T>() = object;
    return id;
  }
  Buffer& buffer(BufferId id) { return program_.buffers[id]; }
  // NHWC without.
  void set_layout(TensorLayout layout) { program_.layout = layout; }

  // Prepares, plans memory, and runs the callable `times` times on the null stream.
  void run(Operation operation, int times = 1);

  std::vector<double> values(BufferId id) const { return tensors_[id].values(); }
  template <typename T>
  T object(BufferId id) {
    return *tensors_[id].as<T>();
  }

  Instruction instruction{.name = "step", .operation = Recorded{}, .op = 0};
  UpdateRule rule;
  std::vector<IterationRecord> records = std::vector<IterationRecord>(kMetricsKept);

 private:
  Graph graph_;
  Program program_;
  std::deque<GuardedTensor> tensors_;
};

}  // namespace plumb::cuda
