// A training step as data: buffers, and steps with declared reads and writes. The runner, the timer, the
// memory plan, the simulator and the dry run all read this one list.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace plumb {

using BufferId = std::size_t;  // index into Program::buffers
using StepId = std::size_t;    // index into Program::steps

enum class DType { f32, f16, bf16, i32, i64, u8 };
std::size_t bytes_of(DType dtype);
std::string_view name_of(DType dtype);

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

enum class Access { read, write, read_write };
struct BufferUse {
  BufferId buffer = 0;
  Access access = Access::read;
  bool reads() const { return access != Access::write; }
  bool writes() const { return access != Access::read; }
};

enum class Lane { input, compute, communication };
inline constexpr std::size_t kLanes = 3;
std::string_view name_of(Lane lane);

enum class Phase { input, forward, backward, reduce, update };
std::string_view name_of(Phase phase);

// What a step does. The comment gives the order of Step::uses, which describing and binding agree on;
// [x] is there only sometimes.
enum class StepKind {
  load_batch,          // images w, labels w; where a pack_batch follows: both staged ones w
  pack_batch,          // staged images r, staged labels r, state r, images w, labels w: takes the half of the
                       // staged ones that the iteration's parity says, in the device's layout and dtype
  conv_forward,        // in r, weight (forward's copy) r, out w, [factors r], [residual r, activated w],
                       // [sums w]; which are there: Step::fusion
  conv_backward_data,  // d_out r, weight (backward-data's copy) r, d_in w
  conv_backward_weights,    // in r, d_out r, d_weight w, [factors r]
  conv_norm_backward_data,  // d_out r, weight r, norm_in r, bias r, mean r, inverse_deviation r, scale r,
                            // d_activated w, d_scale w, d_bias w, coefficients w: backward through the
                            // convolution and the ReLU of the norm in front of it, and that norm's reductions
  norm_forward,             // in r, scale r, bias r, running_mean rw, running_variance rw, out w, mean w,
                            // inverse_deviation w, [residual r], [slope r]; cuda has norm_statistics and
                            // norm_apply
  norm_statistics,          // in r, scale r, bias r, running_mean rw, running_variance rw, factors w, mean w,
                            // inverse_deviation w; factors [2, c]: normalised = factors[0] * x + factors[1];
                            // they are f32, and in the dtype of activations where a conv step reads them
  norm_finalize,            // the same with sums r in place of in: [2, c] of elements and of their squares
  norm_apply,               // in r, factors r, out w, [mask w], [residual r], [residual's factors r], [slope
                            // r]: out = activation(normalised + residual); with factors, the residual is the
                            // input of a norm that is normalised on the way
  norm_backward_apply,      // d_activated r, in r, coefficients r, d_in w: coefficients [3, c],
                            // d_in = coefficients[0] * d_activated + coefficients[1] * in + coefficients[2]
  norm_backward,            // in r, d_out r, scale r, bias r, mean r, inverse_deviation r, d_in w, d_scale w,
                            // d_bias w, [mask r], [second d_out r], [d_residual w], [slope r, d_slope w];
                            // cuda: d_in rw where it is added to a gradient that is there already
  // inverse_deviation: 1 / sqrt(variance + epsilon); what passed the ReLU or PReLU says a mask of one bit per
  // element (dtype u8), or the norm's output where it is > 0 (dims of in), or the norm's factors [2, c] where
  // factors[0] * in + factors[1] is > 0; a cpu finds that out from in, scale and bias
  pool_forward,            // in r, out w, [argmax w], [factors r]: with factors, of relu(normalised)
  pool_backward,           // d_out r, d_in w, [argmax r, [second d_out r]]
  dense_forward,           // in r, weight r, bias r, out w
  dense_backward_data,     // d_out r, weight r, d_in w
  dense_backward_weights,  // in r, d_out r, d_weight w, d_bias w
  dropout_forward,         // in r, state r, out w
  dropout_backward,        // d_out r, state r, d_in w: the same elements again, from the same random numbers
  softmax_loss,            // logits r, labels r, d_logits w, state rw
  // Of a margin loss (kernels/margin_lowering.h says who is who). N: images of all ranks in the head's batch,
  // E: embedding, C: rows of class centres that the step works with. f32 but for weight copies, rows,
  // cosines.
  margin_features,           // features r, labels r, normalized w, labels of all w, inverse_norms w
  margin_sample,             // labels of all r, state r, samples w, sample_count w, columns w
  margin_gather,             // samples r, sample_count r, weight r, rows w
  margin_class_norms,        // rows r, [sample_count r], class_inverse_norms w
  margin_products,           // normalized of all r, rows r, products w: [N, C]
  margin_statistics,         // products r, class_inverse_norms r, columns r, [sample_count r], local_max w,
                             // row_max w, row_sums w, target_factor w
  margin_rescale,            // local_max r, row_max r, row_sums rw: sums as if row_max had been their maximum
  margin_gradient,           // products rw, class_inverse_norms r, columns r, [sample_count r], row_max r,
                             // row_sums r, target_factor r, state rw: what flows back, in place of products
  margin_feature_products,   // products r, rows r, d_normalized of all w
  margin_weight_gradient,    // products r, normalized of all r, rows r, class_inverse_norms r, d_rows w
  margin_features_backward,  // d_normalized r, normalized r, inverse_norms r, d_features w
  accumulate,                // into rw, from r: into += from
  cast,                      // from r, into w: another dtype, same elements, times Step::scale
  reduce,                    // every buffer of the bucket rw
  find_overflow,             // overflow w, gradients r …: whether one of them is not finite
  update,         // master rw, momentum rw, gradient r, state r, [further copies of the weight w …];
                  // all parameters in one step: state r, [overflow r], then of each master rw, momentum rw,
                  // gradient r, [copies w …]; with an overflow nothing changes
  update_rows,    // master rw, momentum rw, d_rows r, samples r, sample_count r, state r, [overflow r]: the
                  // update of the rows that were sampled; the others stay as they are
  advance_state,  // state rw, [overflow r]: iteration += 1, and the next loss scale
};
std::string_view name_of(StepKind kind);

// Multiply-accumulates and the bytes of memory traffic that can't be avoided, for the roofline.
struct Work {
  double macs = 0;
  double bytes = 0;
};

// What a convolution's engine does beside the convolution, in one pass over memory.
struct ConvFusion {
  bool normalizes_input = false;    // reads relu(factors[0] * in + factors[1]) in place of in
  bool adds_residual = false;       // … + residual inside the relu, and writes the sum out as `activated`
  bool gathers_statistics = false;  // sums [2, c] of what it writes
};

// What the runner hands to the communicator in place of calling a function. All work in place. allgather and
// reduce_scatter see the buffer as one part of elements / world size for each rank: allgather spreads rank
// r's part r to all; reduce_scatter leaves the sum of all ranks' parts r in part r of rank r, and anything in
// the other parts.
struct Collective {
  enum class Kind { allreduce_sum, allreduce_max, allgather, reduce_scatter_sum };
  Kind kind = Kind::allreduce_sum;
  BufferId buffer = 0;       // the root (bucket) it works on, in place
  std::size_t elements = 0;  // of the whole buffer
  DType dtype = DType::f32;
};
std::string_view name_of(Collective::Kind kind);
// Whether each rank has a part of the buffer: an allgather, a reduce-scatter.
bool has_parts(Collective::Kind kind);

// A callable captures no value that changes per iteration: those live in the device's StepState.
using ComputeFn = std::function<void()>;

inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);

struct Step {
  std::string name;  // "layer1.0.conv1.forward"
  StepKind kind = StepKind::advance_state;
  Phase phase = Phase::forward;
  Lane lane = Lane::compute;
  std::size_t op = kNone;         // index into Graph::ops that it computes a part of
  std::size_t parameter = kNone;  // update: index into Graph::parameters; kNone if it updates all
  std::vector<BufferUse> uses;
  std::size_t workspace_bytes = 0;
  double scale = 1;   // cast: into = scale * from
  ConvFusion fusion;  // conv_*
  Work work;
  // Before preparing: the engine wanted, by its library's name. After: the one that runs; empty where there
  // is no choice of engines.
  std::string engine;
  std::optional<double> tuned_seconds;  // of that engine on its own, where it was timed
  std::variant<std::monostate, ComputeFn, Collective> action;  // monostate until bound
};

struct Program {
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  bool allow_tf32 = false;  // products of f32 may be rounded to TF32; otherwise they are strict
};

// The buffer that holds the memory of `id`: itself, or what it is a view of.
BufferId root_of(const Program& program, BufferId id);

// A hash over what all ranks must agree on: every collective's kind, dtype and elements, and name, layout and
// bytes of every buffer that is reduced in it, in order (FNV-1a, 64 bit). Where ranks have a part each, that
// part's place is another one on every rank and isn't looked at.
std::uint64_t reduction_hash(const Program& program);

}  // namespace plumb
