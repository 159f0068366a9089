// A training iteration as data: buffers, and instructions with declared reads and writes. Shared by the
// runner, the timer, the memory plan, the simulator and the dry run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/program/instructions/batch.h"
#include "kernels/program/instructions/batch_norm.h"
#include "kernels/program/instructions/block_end.h"
#include "kernels/program/instructions/conv.h"
#include "kernels/program/instructions/dtype.h"
#include "kernels/program/instructions/gradients.h"
#include "kernels/program/instructions/layers.h"
#include "kernels/program/instructions/margin_loss.h"

namespace plumb {

using InstructionId = std::size_t;  // index into Program::instructions

// Purpose of a buffer; memory is reported by role.
// overflow: one f32, nonzero if a gradient on this rank was not finite; summed over ranks.
enum class Role {
  input,
  parameter,
  gradient,
  optimizer,
  statistic,
  activation,
  activation_gradient,
  state,
  overflow
};
std::string_view name_of(Role role);

// A buffer's place inside another one, e.g. a gradient inside its bucket.
struct View {
  BufferId root = 0;
  std::size_t offset = 0;  // bytes from the root's first byte
};

struct Buffer {
  std::string name;
  Role role = Role::activation;
  DType dtype = DType::f32;
  // Logical: [n, c, h, w], [out, in, kh, kw], …; the device chooses the layout.
  std::vector<std::int64_t> dims;
  std::size_t bytes = 0;    // on the device, padding included
  bool persistent = false;  // keeps its value between iterations: never shares memory
  std::optional<View> view;
  // Rows are split across ranks: weights differ per rank, and gradients are not reduced.
  bool sharded = false;
  // Element order on the device, as text that ranks compare; empty: row-major or not chosen yet.
  std::string layout;
};

enum class Lane { input, compute, communication };
inline constexpr std::size_t kLanes = 3;
std::string_view name_of(Lane lane);

enum class Phase { input, forward, backward, reduce, update };
std::string_view name_of(Phase phase);

using Operation =
    std::variant<LoadBatch, PackBatch, ConvForward, ConvBackwardData, ConvBackwardWeights,
                 ConvNormBackwardData, BatchNormForward, BatchNormStatistics, BatchNormFinalize,
                 BatchNormApply, BatchNormBackward, BatchNormPairBackward, BatchNormPoolBackward,
                 BatchNormBackwardApply, SamplePixels, ChannelProducts, ProductNormStatistics,
                 BlockEndForward, MaskedGradient, ProductNormBackward, BlockEndBackwardData, PoolForward,
                 PoolBackward, DenseForward, DenseBackwardData, DenseBackwardWeights, DropoutForward,
                 DropoutBackward, SoftmaxCrossEntropy, MarginNormalize, MarginSampleClasses, MarginGatherRows,
                 MarginClassNorms, MarginProducts, MarginStatistics, MarginRescale, MarginGradient,
                 MarginFeatureProducts, MarginWeightGradient, MarginFeaturesBackward, Accumulate, Cast,
                 Collective, FindOverflow, Update, UpdateRows, AdvanceState, Recorded>;

// Multiply-accumulates and minimum memory traffic in bytes, for the roofline.
struct Work {
  double macs = 0;
  double bytes = 0;
};

std::string_view name_of(Collective::Kind kind);
// Whether each rank owns one part of the buffer (allgather, reduce-scatter).
bool has_parts(Collective::Kind kind);

// Captures no per-iteration values; those live in the device's StepState.
using ComputeFn = std::function<void()>;

inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);

struct Instruction {
  std::string name;  // "layer1.0.conv1.forward"
  Operation operation;
  Phase phase = Phase::forward;
  Lane lane = Lane::compute;
  std::size_t op = kNone;  // index into Graph::ops
  std::size_t workspace_bytes = 0;
  Work work;
  // Before prepare(): the requested engine, by its library's name. After: the chosen one; empty if the
  // instruction has no choice of engines.
  std::string engine;
  std::optional<double> tuned_seconds;  // time of `engine` running alone, if measured
  ComputeFn run;  // empty until bound, and for instructions of the runner or communicator

  std::string_view kind() const;        // "conv_forward"
  std::vector<BufferUse> uses() const;  // in the order of the operation's operands
  template <typename... Operations>
  bool is_one_of() const {
    return (std::holds_alternative<Operations>(operation) || ...);
  }
  // Null if the operation has another type.
  template <typename T>
  const T* as() const {
    return std::get_if<T>(&operation);
  }
};

// The buffers of a parameter. An untrained parameter has no momentum, and its gradient is an unread temporary
// of the backward pass (Role::activation_gradient, not persistent). For sampled class centers `gradient`
// holds the sampled rows only.
struct ParameterBuffers {
  BufferId master = kNone, momentum = kNone, gradient = kNone;
  std::vector<BufferId> copies;  // read by forward or backward-data instead of the master
};

// The sampled rows that a parameter's gradient buffer holds.
struct SampledRows {
  BufferId samples = kNone, count = kNone;  // i32 [C], [1]
};

// The buffers of a Graph's tensors; kNone if a tensor has no buffer.
struct Tensors {
  std::vector<ParameterBuffers> parameters;  // by ParameterId
  std::vector<BufferId> statistics;          // by StatisticId
  std::vector<BufferId> values;              // by ValueId
  BufferId labels = kNone, state = kNone;
  BufferId staged_images = kNone, staged_labels = kNone;  // staging buffers of batches, if used
  std::map<std::size_t, SampledRows> sampled_rows;        // by ParameterId
};

struct Program {
  std::vector<Buffer> buffers;
  std::vector<Instruction> instructions;
  Tensors tensors;
  bool allow_tf32 = false;  // f32 products may round inputs to TF32; otherwise strict fp32
};

// The buffer that owns the memory of `id`: `id` itself, or the root of its view.
BufferId root_of(const Program& program, BufferId id);

// Hash (FNV-1a, 64 bit) over everything that ranks must agree on: each collective's kind, dtype and elements,
// and name, layout and bytes of each buffer in it, in order. If each rank owns a part (has_parts), the hash
// skips the part's place, which differs per rank.
std::uint64_t reduction_hash(const Program& program);

}  // namespace plumb
