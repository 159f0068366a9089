// Turns the instructions of a Program into launches. Preparing picks plans and workspaces; a Binder attaches
// addresses once the arena is allocated. Every callable enqueues its work on the compute stream and returns.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/own/norm.h"
#include "kernels/cuda/plan/blocks.h"
#include "kernels/cuda/plan/state.h"
#include "kernels/cuda/vendors/conv.h"
#include "kernels/cuda/vendors/dense.h"
#include "kernels/device.h"
#include "kernels/program/memory_plan.h"
#include "kernels/program/program.h"
#include "models/graph.h"

namespace plumb::cuda {

// The device's resources for all its Programs.
struct Engines {
  const ConvEngine& convolutions;
  const GemmEngine& products;
  cudaStream_t stream = nullptr;       // of the compute lane
  IterationRecord* records = nullptr;  // the ring, as the device addresses it
};

// Inputs and results of preparing.
struct Context : Engines {
  const Graph& graph;
  const UpdateRule& rule;
  Program& program;

  // The operation that the instruction computes a part of.
  template <typename T>
  const T& op(const Instruction& instruction) const {
    return std::get<T>(graph.ops[instruction.op]);
  }
  // Whether products read elements of this dtype as TF32.
  bool is_tf32(DType dtype) const { return program.allow_tf32 && dtype == DType::f32; }
  const Buffer& buffer(BufferId id) const { return program.buffers[id]; }
  DType dtype(BufferId id) const { return program.buffers[id].dtype; }
  std::int64_t elements_held(BufferId id) const {  // padding included
    return static_cast<std::int64_t>(buffer(id).bytes / bytes_of(dtype(id)));
  }
};

// The Binder of launch(arena, stream), which enqueues the work. The arena's MemoryPlan must outlive the
// callable.
template <typename Launch>
Binder launching(const Context& context, Launch launch) {
  return [=, stream = context.stream](const Arena& arena) -> ComputeFn {
    return [=] { launch(arena, stream); };
  };
}

// Plans matrix products that run one after another. Sets the instruction's engine and workspace; the plans'
// own workspace begins after `reserved` bytes.
std::vector<GemmPlan> plan_products(Context& context, Instruction& instruction,
                                    std::vector<GemmProblem> problems, std::size_t reserved);
GemmPlan plan_product(Context& context, Instruction& instruction, const GemmProblem& problem,
                      std::size_t reserved = 0);
// An instruction that is one product of two buffers.
Binder bind_product(Context& context, Instruction& instruction, const GemmProblem& problem, Read a, Read b,
                    Write c);

// A product's f32 operand in the product's dtype: where that is a half type, rounded into the first `bytes`
// of the workspace.
struct RoundedOperand {
  DType dtype = DType::f32;
  std::int64_t elements = 0;
  std::size_t bytes = rounded_bytes(elements, dtype);
  // Enqueues the rounding; returns the address to read.
  const std::byte* round(const std::byte* from, std::byte* workspace, cudaStream_t stream) const;
};

// The moments' addresses, for the kernels of norm.h.
NormStatistics statistics_of(const BatchNormMoments& moments, DType scale_shift_dtype, const BatchNorm& op,
                             const Arena& arena);

// Addresses of what goes back through a norm, of an instruction with these operands, present or not, or of
// one norm of a BatchNormPairBackward; without a slope.
NormBackward backward_of(const auto& norm, const Arena& arena, float* coefficients) {
  const auto at = [&]<typename Member>(const Member& operand) {
    if constexpr (AnOperand<Member>)
      return arena.as<float>(operand);
    else
      return arena.optional<float>(operand);
  };
  return {.scale = at(norm.scale),
          .mean = at(norm.mean),
          .inv_std = at(norm.inv_std),
          .d_scale = at(norm.d_scale),
          .d_bias = at(norm.d_bias),
          .coefficients = coefficients};
}

// Binds the instruction to a kernel or a library's plan through the overloads below. Sets Instruction::engine
// and Instruction::workspace_bytes. Empty for instructions of the runner (LoadBatch) and the communicator.
Binder prepare_instruction(Context& context, Instruction& instruction);

// One overload per instruction; a missing one doesn't compile.
Binder prepare_conv(Context& context, Instruction& instruction);  // by a library's engine
Binder prepare_block_end(Context& context, Instruction& instruction,
                         const ConvBackwardData& conv);  // with a mask
Binder prepare(Context& context, Instruction& instruction, const BatchNormStatistics& norm);
Binder prepare(Context& context, Instruction& instruction, const BatchNormFinalize& norm);
Binder prepare(Context& context, Instruction& instruction, const BatchNormApply& norm);
Binder prepare(Context& context, Instruction& instruction, const BatchNormBackward& norm);
Binder prepare(Context& context, Instruction& instruction, const BatchNormPairBackward& pair);
Binder prepare(Context& context, Instruction& instruction, const BatchNormPoolBackward& norm);
Binder prepare(Context& context, Instruction& instruction, const BatchNormBackwardApply& norm);
Binder prepare(Context& context, Instruction& instruction, const SamplePixels& sample);
Binder prepare(Context& context, Instruction& instruction, const ChannelProducts& products);
Binder prepare(Context& context, Instruction& instruction, const ProductNormStatistics& norm);
Binder prepare(Context& context, Instruction& instruction, const BlockEndForward& end);
Binder prepare(Context& context, Instruction& instruction, const MaskedGradient& gradient);
Binder prepare(Context& context, Instruction& instruction, const ProductNormBackward& norm);
Binder prepare(Context& context, Instruction& instruction, const BlockEndBackwardData& end);
Binder prepare(Context& context, Instruction& instruction, const PoolForward& pool);
Binder prepare(Context& context, Instruction& instruction, const PoolBackward& pool);
Binder prepare(Context& context, Instruction& instruction, const DenseForward& dense);
Binder prepare(Context& context, Instruction& instruction, const DenseBackwardData& dense);
Binder prepare(Context& context, Instruction& instruction, const DenseBackwardWeights& dense);
Binder prepare(Context& context, Instruction& instruction, const DropoutForward& dropout);
Binder prepare(Context& context, Instruction& instruction, const DropoutBackward& dropout);
Binder prepare(Context& context, Instruction& instruction, const SoftmaxCrossEntropy& loss);
Binder prepare(Context& context, Instruction& instruction, const MarginNormalize& margin);
Binder prepare(Context& context, Instruction& instruction, const MarginSampleClasses& margin);
Binder prepare(Context& context, Instruction& instruction, const MarginGatherRows& margin);
Binder prepare(Context& context, Instruction& instruction, const MarginClassNorms& margin);
Binder prepare(Context& context, Instruction& instruction, const MarginProducts& margin);
Binder prepare(Context& context, Instruction& instruction, const MarginStatistics& margin);
Binder prepare(Context& context, Instruction& instruction, const MarginRescale& margin);
Binder prepare(Context& context, Instruction& instruction, const MarginGradient& margin);
Binder prepare(Context& context, Instruction& instruction, const MarginFeatureProducts& margin);
Binder prepare(Context& context, Instruction& instruction, const MarginWeightGradient& margin);
Binder prepare(Context& context, Instruction& instruction, const MarginFeaturesBackward& margin);
Binder prepare(Context& context, Instruction& instruction, const PackBatch& pack);
Binder prepare(Context& context, Instruction& instruction, const Accumulate& accumulate);
Binder prepare(Context& context, Instruction& instruction, const Cast& cast);
Binder prepare(Context& context, Instruction& instruction, const FindOverflow& search);
Binder prepare(Context& context, Instruction& instruction, const Update& update);
Binder prepare(Context& context, Instruction& instruction, const UpdateRows& update);
Binder prepare(Context& context, Instruction& instruction, const AdvanceState& advance);

}  // namespace plumb::cuda
