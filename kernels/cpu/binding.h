// How steps of a Program become oneDNN primitives or loops of our own. Preparing makes every primitive and
// settles layouts and sizes; finishing, once the arena is there, attaches addresses.
#pragma once

#include <cstddef>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cpu/channel_layout.h"
#include "kernels/cpu/state.h"
#include "kernels/device.h"
#include "kernels/lowering.h"
#include "kernels/program.h"
#include "models/graph.h"

namespace plumb::cpu {

// Addresses, known once the arena is allocated.
class Arena {
 public:
  Arena() = default;
  Arena(std::byte* base, const MemoryPlan& plan) : base_(base), plan_(&plan) {}
  std::byte* data(BufferId buffer) const { return base_ + plan_->offsets[buffer]; }
  template <typename T = float>
  T* as(BufferId buffer) const {
    return reinterpret_cast<T*>(data(buffer));
  }
  // Null if the instruction lacks the operand.
  template <typename T = float, Access kAccess>
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

// What preparing reads and settles.
struct Context {
  const Graph& graph;
  const UpdateRule& rule;
  Program& program;
  dnnl::engine engine;
  dnnl::stream stream;
  std::vector<std::optional<dnnl::memory::desc>>& layouts;  // by BufferId; empty until somebody chose

  const Tensors& tensors() const { return program.tensors; }
  // The layout of a buffer; if nobody chose one yet, it becomes `wanted`, and the buffer takes its bytes.
  const dnnl::memory::desc& settle(BufferId buffer, const dnnl::memory::desc& wanted);
  // Elements that the device holds of an fp32 buffer, padding included.
  std::size_t floats(BufferId buffer) const { return program.buffers[buffer].bytes / sizeof(float); }
};

dnnl::primitive_attr user_scratchpad();
dnnl::memory::desc any_layout(const std::vector<std::int64_t>& dims);
dnnl::memory::desc plain_layout(const std::vector<std::int64_t>& dims);  // row-major

// Nothing where a layout of [n, c, h, w] or [n, c] has no such form.
std::optional<ChannelLayout> channel_layout(const dnnl::memory::desc& layout);

// The addresses of a Call's operands, by what input(), output(), raw() and scratchpad() returned.
class Addresses {
 public:
  struct Place {
    std::size_t index = kNone;  // kNone: the instruction lacks the operand
  };
  explicit Addresses(std::vector<std::byte*> addresses) : addresses_(std::move(addresses)) {}
  template <typename T = float>
  T* as(Place place) const {  // null if it lacks it
    return place.index == kNone ? nullptr : reinterpret_cast<T*>(addresses_[place.index]);
  }

 private:
  std::vector<std::byte*> addresses_;
};

// One execution of a primitive, or of a loop of ours, with its operands. An operand that it wants in another
// layout than the buffer holds is reordered through the workspace, before or after.
class Call {
 public:
  using Place = Addresses::Place;
  using Body = std::function<ComputeFn(const Addresses&)>;

  Call(Context& context, Step& step) : context_(context), step_(step) {}

  // Operands of a primitive, by oneDNN's argument.
  Place input(int argument, BufferId buffer, const dnnl::memory::desc& wanted) {
    return add(argument, buffer, wanted, true);
  }
  Place output(int argument, BufferId buffer, const dnnl::memory::desc& made) {
    return add(argument, buffer, made, false);
  }
  // Operands of a loop of ours.
  Place input(const std::optional<Read>& operand, const dnnl::memory::desc& wanted) {
    return operand ? add(0, *operand, wanted, true) : Place{};
  }
  Place output(const std::optional<Write>& operand, const dnnl::memory::desc& made) {
    return operand ? add(0, *operand, made, false) : Place{};
  }
  Place updated(ReadWrite operand, const dnnl::memory::desc& held) { return add(0, operand, held, true); }
  // An operand that no other step reads in another layout; the buffer takes at least its bytes.
  Place raw(int argument, BufferId buffer, const dnnl::memory::desc& layout);
  Place scratchpad(const dnnl::memory::desc& layout);

  // Both take note of the workspace that the step wants; the Call may go away afterwards.
  Binder finish(dnnl::primitive primitive);
  Binder finish(Body body);

 private:
  struct Operand {
    int argument = 0;
    BufferId buffer = 0;
    dnnl::memory::desc layout;  // as the primitive or loop wants it
    enum class Place { buffer, copied_in, copied_out, workspace } place = Place::buffer;
    std::size_t workspace_offset = 0;
    dnnl::memory::desc held;  // of a copied operand: as the buffer has it
    dnnl::reorder reorder;
  };
  Place add(int argument, BufferId buffer, const dnnl::memory::desc& wanted, bool is_input);
  std::size_t take_workspace(std::size_t bytes);

  Context& context_;
  Step& step_;
  std::vector<Operand> operands_;
  std::size_t workspace_bytes_ = 0;
};

// Binds the step to a primitive or a loop. Empty for what the runner (LoadBatch) and the communicator do.
Binder prepare_step(Context& context, Step& step);

// An overload for each instruction. One that is missing doesn't compile.
Binder prepare(Context& context, Step& step, const ConvForward& conv);
Binder prepare(Context& context, Step& step, const ConvBackwardData& conv);
Binder prepare(Context& context, Step& step, const ConvBackwardWeights& conv);
Binder prepare(Context& context, Step& step, const BatchNormForward& norm);
Binder prepare(Context& context, Step& step, const BatchNormBackward& norm);
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
Binder prepare(Context& context, Step& step, const Accumulate& accumulate);
Binder prepare(Context& context, Step& step, const Cast& cast);
Binder prepare(Context& context, Step& step, const Update& update);
Binder prepare(Context& context, Step& step, const UpdateRows& update);
Binder prepare(Context& context, Step& step, const AdvanceState& advance);

}  // namespace plumb::cpu
