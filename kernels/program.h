// A training step as data: buffers, and steps with declared reads and writes. The runner, the timer, the
// memory plan, the simulator and the dry run all read this one list.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/instructions/batch.h"
#include "kernels/instructions/batch_norm.h"
#include "kernels/instructions/conv.h"
#include "kernels/instructions/dtype.h"
#include "kernels/instructions/gradients.h"
#include "kernels/instructions/layers.h"
#include "kernels/instructions/margin_loss.h"
#include "kernels/instructions/recorded.h"

namespace plumb {

using StepId = std::size_t;  // index into Program::steps

// What a buffer is for; memory is reported by these.
// overflow: one f32 that is not 0 if a gradient on this rank was not finite; ranks add theirs up.
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

// A buffer's place inside another one: a gradient inside its bucket.
struct View {
  BufferId root = 0;
  std::size_t offset = 0;  // bytes from the root's first byte
};

struct Buffer {
  std::string name;
  Role role = Role::activation;
  DType dtype = DType::f32;
  // Logical: [n, c, h, w], [out, in, kh, kw], …; the layout is the device's business.
  std::vector<std::int64_t> dims;
  std::size_t bytes = 0;    // as held by the device, padding included
  bool persistent = false;  // keeps its value between iterations: shares memory with nothing
  std::optional<View> view;
  // Of a tensor whose rows the ranks share out: a gradient that isn't reduced, a weight that differs.
  bool sharded = false;
  // How the device orders the elements, as text that ranks can compare; empty: row-major, or not settled yet.
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
                 BatchNormApply, BatchNormBackward, BatchNormBackwardApply, PoolForward, PoolBackward,
                 DenseForward, DenseBackwardData, DenseBackwardWeights, DropoutForward, DropoutBackward,
                 SoftmaxCrossEntropy, MarginNormalize, MarginSampleClasses, MarginGatherRows,
                 MarginClassNorms, MarginProducts, MarginStatistics, MarginRescale, MarginGradient,
                 MarginFeatureProducts, MarginWeightGradient, MarginFeaturesBackward, Accumulate, Cast,
                 Collective, FindOverflow, Update, UpdateRows, AdvanceState, Recorded>;

// "conv_forward", …
std::string_view name_of(const Operation& operation);
// In the order in which the instruction lists its operands.
std::vector<BufferUse> uses_of(const Operation& operation);

// Multiply-accumulates and the bytes of memory traffic that can't be avoided, for the roofline.
struct Work {
  double macs = 0;
  double bytes = 0;
};

std::string_view name_of(Collective::Kind kind);
// Whether each rank has a part of the buffer: an allgather, a reduce-scatter.
bool has_parts(Collective::Kind kind);

// A callable captures no value that changes per iteration: those live in the device's StepState.
using ComputeFn = std::function<void()>;

inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);

struct Step {
  std::string name;  // "layer1.0.conv1.forward"
  Operation operation;
  Phase phase = Phase::forward;
  Lane lane = Lane::compute;
  std::size_t op = kNone;  // index into Graph::ops that it computes a part of
  std::size_t workspace_bytes = 0;
  Work work;
  // Before preparing: the engine wanted, by its library's name. After: the one that runs; empty where there
  // is no choice of engines.
  std::string engine;
  std::optional<double> tuned_seconds;  // of that engine on its own, where it was timed
  ComputeFn run;                        // empty until bound, and for what the runner or communicator does

  std::string_view kind() const { return name_of(operation); }
  std::vector<BufferUse> uses() const { return uses_of(operation); }
  // Null if it is of another kind.
  template <typename T>
  const T* as() const {
    return std::get_if<T>(&operation);
  }
};

// The buffers of a parameter. One that isn't trained has no momentum, and its gradient is a buffer like any
// other of the backward pass (Role::activation_gradient, not persistent) that nobody reads. Class centres
// that are sampled have the gradient of the sampled rows.
struct ParameterBuffers {
  BufferId master = kNone, momentum = kNone, gradient = kNone;
  std::vector<BufferId> copies;  // what forward or backward-data read in place of the master
};

// Which rows of a parameter's gradient its buffer holds, where a step samples them.
struct SampledRows {
  BufferId samples = kNone, count = kNone;  // i32 [C], [1]
};

// Which buffers hold what the Graph declares; kNone where nothing does.
struct Tensors {
  std::vector<ParameterBuffers> parameters;  // by ParameterId
  std::vector<BufferId> statistics;          // by StatisticId
  std::vector<BufferId> values;              // by ValueId
  BufferId labels = kNone, state = kNone;
  BufferId staged_images = kNone, staged_labels = kNone;  // where batches arrive, if not in place
  std::map<std::size_t, SampledRows> sampled_rows;        // by ParameterId
};

struct Program {
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  Tensors tensors;
  bool allow_tf32 = false;  // products of f32 may be rounded to TF32; otherwise they are strict
};

// The buffer that holds the memory of `id`: itself, or what it is a view of.
BufferId root_of(const Program& program, BufferId id);

// A hash over what all ranks must agree on: every collective's kind, dtype and elements, and name, layout and
// bytes of every buffer that is reduced in it, in order (FNV-1a, 64 bit). Where ranks have a part each, that
// part's place is another one on every rank and isn't looked at.
std::uint64_t reduction_hash(const Program& program);

}  // namespace plumb
