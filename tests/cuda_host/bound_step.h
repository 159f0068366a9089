// One step of a Program, prepared and finished as the CUDA device does it, with its operands in a test's
// hands.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "kernels/cuda/binding.h"
#include "tests/cuda_host/operand.h"

namespace plumb::cuda {

// For steps that have nothing to do with convolutions.
class NoConvolutions : public ConvEngine {
 public:
  std::string library() const override { return "none"; }
  std::unique_ptr<ConvCandidates> candidates(const ConvProblem& problem,
                                             std::size_t workspace_limit) override;
};

class BoundStep {
 public:
  BoundStep(StepKind kind, Graph graph) : graph_(std::move(graph)) {
    step.name = "step";
    step.kind = kind;
    step.op = 0;
  }

  // The step's uses, in order. The name matters to whoever looks a parameter up.
  BufferId read(DType dtype, const std::vector<double>& values) { return add(dtype, values, Access::read); }
  BufferId update(DType dtype, const std::vector<double>& values, std::string name = {}) {
    return add(dtype, values, Access::read_write, std::move(name));
  }
  BufferId write(DType dtype, std::size_t elements) { return add(dtype, elements, Access::write); }
  template <typename T>
  BufferId use_object(const T& object, Role role, Access access);
  Buffer& buffer(BufferId id) { return program_.buffers[id]; }

  // Prepares, plans the memory, runs the callable `times` times on the null stream.
  void run(Finish (*prepare)(Context&, Step&), int times = 1);

  std::vector<double> values(BufferId id) const { return operands_[id].values(); }
  template <typename T>
  T object(BufferId id) {
    return *operands_[id].as<T>();
  }

  Step step;
  UpdateRule rule;
  std::vector<IterationRecord> records = std::vector<IterationRecord>(Device::kMetricsKept);

 private:
  template <typename Contents>
  BufferId add(DType dtype, const Contents& contents, Access access, std::string name = {}) {
    operands_.emplace_back(dtype, contents);
    program_.buffers.push_back({.name = std::move(name),
                                .dtype = dtype,
                                .dims = {static_cast<std::int64_t>(operands_.back().elements())},
                                .bytes = operands_.back().elements() * bytes_of(dtype),
                                .persistent = true});
    step.uses.push_back({program_.buffers.size() - 1, access});
    return step.uses.back().buffer;
  }

  Graph graph_;
  Program program_;
  std::deque<Operand> operands_;
};

// An object of the device, such as its State, byte by byte.
template <typename T>
BufferId BoundStep::use_object(const T& object, Role role, Access access) {
  const BufferId id = add(DType::u8, sizeof(T), access);
  *operands_.back().as<T>() = object;
  program_.buffers[id].role = role;
  return id;
}

}  // namespace plumb::cuda
