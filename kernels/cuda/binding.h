// Turns the steps of a Program into launches. Preparing picks plans and workspaces; finishing attaches
// addresses once the arena is allocated. Every callable enqueues on the compute stream and returns.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

#include "kernels/cuda/conv.h"
#include "kernels/cuda/dense.h"
#include "kernels/cuda/state.h"
#include "kernels/device.h"
#include "kernels/memory_plan.h"
#include "kernels/program.h"
#include "models/graph.h"

namespace plumb::cuda {

// Device addresses, known once the arena is allocated.
class Arena {
 public:
  Arena() = default;
  Arena(std::byte* base, const MemoryPlan& plan) : base_(base), plan_(&plan) {}
  std::byte* data(BufferId buffer) const { return base_ + plan_->offsets[buffer]; }
  template <typename T>
  T* as(BufferId buffer) const {
    return reinterpret_cast<T*>(data(buffer));
  }
  // Null if the instruction lacks the operand.
  template <typename T = std::byte, Access kAccess>
  T* optional(const std::optional<Operand<kAccess>>& operand) const {
    return operand ? as<T>(operand->buffer) : nullptr;
  }
  std::byte* workspace(Lane lane) const {
    return base_ + plan_->workspace_offsets[static_cast<std::size_t>(lane)];
  }

 private:
  std::byte* base_ = nullptr;
  const MemoryPlan* plan_ = nullptr;
};

using Binder = std::function<ComputeFn(const Arena&)>;

// Inputs and results of preparing.
struct Context {
  const Graph& graph;
  const UpdateRule& rule;
  Program& program;
  ConvEngine& convolutions;
  GemmEngine& products;
  cudaStream_t stream = nullptr;       // of the compute lane
  IterationRecord* records = nullptr;  // the ring, as the device addresses it

  const Buffer& buffer(BufferId id) const { return program.buffers[id]; }
  DType dtype(BufferId id) const { return program.buffers[id].dtype; }
};

// Plans a matrix product. Sets the step's engine and workspace; the plan's own workspace begins after
// `reserved` bytes.
std::shared_ptr<const GemmPlan> plan_product(Context& context, Step& step, GemmProblem problem,
                                             std::size_t reserved = 0);

// Binds the step to a kernel or a library's plan through the overloads below. Sets Step::engine and
// Step::workspace_bytes. Empty for steps of the runner (LoadBatch) and the communicator.
Binder prepare_step(Context& context, Step& step);

// One overload per instruction; a missing one doesn't compile.
Binder prepare_conv(Context& context, Step& step);       // by a library's engine
Binder prepare_depthwise(Context& context, Step& step);  // groups = channels
Binder prepare(Context& context, Step& step, const BatchNormStatistics& norm);
Binder prepare(Context& context, Step& step, const BatchNormFinalize& norm);
Binder prepare(Context& context, Step& step, const BatchNormApply& norm);
Binder prepare(Context& context, Step& step, const BatchNormBackward& norm);
Binder prepare(Context& context, Step& step, const BatchNormBackwardApply& norm);
Binder prepare(Context& context, Step& step, const PoolForward& pool);
Binder prepare(Context& context, Step& step, const PoolBackward& pool);
Binder prepare(Context& context, Step& step, const DenseForward& dense);
Binder prepare(Context& context, Step& step, const DenseBackwardData& dense);
Binder prepare(Context& context, Step& step, const DenseBackwardWeights& dense);
Binder prepare(Context& context, Step& step, const DropoutForward& dropout);
Binder prepare(Context& context, Step& step, const DropoutBackward& dropout);
Binder prepare(Context& context, Step& step, const SoftmaxCrossEntropy& loss);
Binder prepare(Context& context, Step& step, const MarginNormalize& margin);
Binder prepare(Context& context, Step& step, const MarginSampleClasses& margin);
Binder prepare(Context& context, Step& step, const MarginGatherRows& margin);
Binder prepare(Context& context, Step& step, const MarginClassNorms& margin);
Binder prepare(Context& context, Step& step, const MarginProducts& margin);
Binder prepare(Context& context, Step& step, const MarginStatistics& margin);
Binder prepare(Context& context, Step& step, const MarginRescale& margin);
Binder prepare(Context& context, Step& step, const MarginGradient& margin);
Binder prepare(Context& context, Step& step, const MarginFeatureProducts& margin);
Binder prepare(Context& context, Step& step, const MarginWeightGradient& margin);
Binder prepare(Context& context, Step& step, const MarginFeaturesBackward& margin);
Binder prepare(Context& context, Step& step, const PackBatch& pack);
Binder prepare(Context& context, Step& step, const Accumulate& accumulate);
Binder prepare(Context& context, Step& step, const Cast& cast);
Binder prepare(Context& context, Step& step, const FindOverflow& search);
Binder prepare(Context& context, Step& step, const Update& update);
Binder prepare(Context& context, Step& step, const UpdateRows& update);
Binder prepare(Context& context, Step& step, const AdvanceState& advance);

}  // namespace plumb::cuda
