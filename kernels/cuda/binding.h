// How steps of a Program become launches: preparing makes plans and settles workspaces, finishing, once the
// arena is there, attaches addresses. Every callable enqueues on the compute stream and returns.
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

// Addresses in device memory, known once the arena is allocated.
class Arena {
 public:
  Arena() = default;
  Arena(std::byte* base, const MemoryPlan& plan) : base_(base), plan_(&plan) {}
  std::byte* data(BufferId buffer) const { return base_ + plan_->offsets[buffer]; }
  template <typename T>
  T* as(BufferId buffer) const {
    return reinterpret_cast<T*>(data(buffer));
  }
  std::byte* workspace(Lane lane) const {
    return base_ + plan_->workspace_offsets[static_cast<std::size_t>(lane)];
  }

 private:
  std::byte* base_ = nullptr;
  const MemoryPlan* plan_ = nullptr;
};

using Finish = std::function<ComputeFn(const Arena&)>;

// What preparing reads and settles.
struct Context {
  const Graph& graph;
  const UpdateRule& rule;
  Program& program;
  ConvEngine& convolutions;
  GemmEngine& products;
  cudaStream_t stream = nullptr;       // of the compute lane
  IterationRecord* records = nullptr;  // the ring, as the device addresses it

  const Buffer& buffer(const Step& step, std::size_t use) const {
    return program.buffers[step.uses.at(use).buffer];
  }
};

// What runs a step, by one of those below; nothing for a step that isn't the device's (load_batch, reduce).
Finish prepare_step(Context& context, Step& step);

// One file each; the step kinds they answer for stand in program.h. Each sets Step::workspace_bytes.
Finish prepare_conv(Context& context, Step& step);          // conv_*
Finish prepare_norm(Context& context, Step& step);          // norm_*
Finish prepare_pool(Context& context, Step& step);          // pool_*
Finish prepare_dense(Context& context, Step& step);         // dense_*
Finish prepare_depthwise(Context& context, Step& step);     // conv_* with as many groups as channels
Finish prepare_dropout(Context& context, Step& step);       // dropout_*
Finish prepare_softmax_loss(Context& context, Step& step);  // softmax_loss
Finish prepare_margin_loss(Context& context, Step& step);   // margin_*
Finish prepare_elementwise(Context& context, Step& step);   // pack_batch, accumulate, cast
Finish prepare_update(Context& context, Step& step);        // find_overflow, update, advance_state
Finish prepare_update_rows(Context& context, Step& step);   // update_rows

}  // namespace plumb::cuda
