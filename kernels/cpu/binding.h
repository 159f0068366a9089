// Turns instructions of a Program into oneDNN primitives or our own loops. Preparing creates the primitives
// and fixes layouts and sizes; the Binder that it returns attaches addresses once the arena is allocated.
#pragma once

#include <cstddef>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <vector>

#include "kernels/cpu/norm_loops.h"
#include "kernels/cpu/state.h"
#include "kernels/device.h"
#include "kernels/program/lowering.h"
#include "kernels/program/program.h"
#include "models/graph.h"

namespace plumb::cpu {

// The Binder of a loop that takes its operands from the arena each time it runs.
inline Binder bind_loop(std::function<void(const Arena&)> loop) {
  return [loop = std::move(loop)](const Arena& arena) -> ComputeFn { return [=] { loop(arena); }; };
}

// Inputs and results of preparing.
struct Context {
  const Graph& graph;
  const UpdateRule& rule;
  Program& program;
  dnnl::engine engine;
  dnnl::stream stream;
  const DeviceLimits& limits;
  std::vector<std::optional<dnnl::memory::desc>>& layouts;  // by BufferId; empty until chosen

  // The operation that the instruction computes a part of.
  template <typename T>
  const T& op(const Instruction& instruction) const {
    return std::get<T>(graph.ops[instruction.op]);
  }
  const Tensors& tensors() const { return program.tensors; }
  // The layout of a buffer. If none is chosen yet, chooses `wanted` and sets the buffer's bytes from it.
  const dnnl::memory::desc& settle(BufferId buffer, const dnnl::memory::desc& wanted);
  DType dtype(BufferId buffer) const { return program.buffers[buffer].dtype; }
  // Padding included.
  std::size_t elements(BufferId buffer) const {
    return program.buffers[buffer].bytes / bytes_of(dtype(buffer));
  }
};

dnnl::memory::data_type data_type_of(DType dtype);
dnnl::memory::desc any_layout(const std::vector<std::int64_t>& dims, DType dtype = DType::f32);
dnnl::memory::desc plain_layout(const std::vector<std::int64_t>& dims,
                                DType dtype = DType::f32);  // row-major

// nullopt if the layout of [n, c, h, w] or [n, c] isn't of this form.
std::optional<ChannelLayout> channel_layout(const dnnl::memory::desc& layout);

// A Call's operands in the arena, also in oneDNN's C form: running a primitive constructs nothing.
class BoundOperands {
 public:
  struct Place {
    std::size_t index = kNone;  // kNone: the instruction lacks the operand
  };
  explicit BoundOperands(const Arena& all = {}) : arena(all) {}
  void add(int argument, dnnl::memory memory);
  template <typename T = float>
  T* as(Place place) const {  // null if the instruction lacks the operand
    return place.index == kNone ? nullptr : static_cast<T*>(memories_[place.index].get_data_handle());
  }
  void execute(const dnnl::primitive& primitive, const dnnl::stream& stream) const;

  const Arena arena;  // for operands whose layout is always plain

 private:
  std::vector<dnnl::memory> memories_;  // keep the handles below alive
  std::vector<dnnl_exec_arg_t> arguments_;
};

// One execution of a primitive or of our own loop, with its operands. If it needs an operand in another
// layout than the buffer's, the operand is reordered through the workspace before or after.
class Call {
 public:
  using Place = BoundOperands::Place;

  Call(Context& context, Instruction& instruction) : context_(context), instruction_(instruction) {}

  // Operands of a primitive, by oneDNN's argument.
  Place input(int argument, BufferId buffer, const dnnl::memory::desc& wanted) {
    return add(argument, buffer, wanted, true);
  }
  Place output(int argument, BufferId buffer, const dnnl::memory::desc& made) {
    return add(argument, buffer, made, false);
  }
  // Operands of our own loop.
  Place input(const std::optional<Read>& operand, const dnnl::memory::desc& wanted) {
    return operand ? add(0, *operand, wanted, true) : Place{};
  }
  Place output(const std::optional<Write>& operand, const dnnl::memory::desc& made) {
    return operand ? add(0, *operand, made, false) : Place{};
  }
  Place updated(ReadWrite operand, const dnnl::memory::desc& held) { return add(0, operand, held, true); }
  // An operand with the same layout in all instructions; the buffer grows to its bytes if smaller.
  Place raw(int argument, BufferId buffer, const dnnl::memory::desc& layout);
  Place scratchpad(const dnnl::memory::desc& layout);

  // Both record the instruction's workspace size. The Call need not outlive them.
  Binder finish(std::function<void(const BoundOperands&)> run);
  template <typename Primitive>
  Binder finish(const typename Primitive::primitive_desc& descriptor) {
    scratchpad(descriptor.scratchpad_desc());
    return finish([primitive = Primitive(descriptor), stream = context_.stream](const BoundOperands& at) {
      at.execute(primitive, stream);
    });
  }

 private:
  struct Operand {
    int argument = 0;
    dnnl::memory::desc layout;             // required by the primitive or loop
    BufferId buffer = kNone;               // kNone: a scratchpad
    std::size_t workspace_offset = kNone;  // kNone: used in place
    bool is_input = true;
    dnnl::memory::desc held;  // of a copied operand: the buffer's layout
    dnnl::primitive reorder;  // empty unless copied
  };
  Place add(int argument, BufferId buffer, const dnnl::memory::desc& wanted, bool is_input);
  std::size_t take_workspace(std::size_t bytes);

  Context& context_;
  Instruction& instruction_;
  std::vector<Operand> operands_;
  std::size_t workspace_bytes_ = 0;
};

// Binds the instruction to a primitive or a loop. Empty for instructions of the runner (LoadBatch) and the
// communicator.
Binder prepare_instruction(Context& context, Instruction& instruction);

// Convolutions whose engine is kWinograd.
Binder prepare_winograd(Context& context, Instruction& instruction);

// One overload per instruction; a missing one doesn't compile.
Binder prepare(Context& context, Instruction& instruction, const PackBatch& pack);
Binder prepare(Context& context, Instruction& instruction, const ConvForward& conv);
Binder prepare(Context& context, Instruction& instruction, const ConvBackwardData& conv);
Binder prepare(Context& context, Instruction& instruction, const ConvBackwardWeights& conv);
Binder prepare(Context& context, Instruction& instruction, const BatchNormForward& norm);
Binder prepare(Context& context, Instruction& instruction, const BatchNormBackward& norm);
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
Binder prepare(Context& context, Instruction& instruction, const Accumulate& accumulate);
Binder prepare(Context& context, Instruction& instruction, const Cast& cast);
Binder prepare(Context& context, Instruction& instruction, const Update& update);
Binder prepare(Context& context, Instruction& instruction, const UpdateRows& update);
Binder prepare(Context& context, Instruction& instruction, const AdvanceState& advance);

}  // namespace plumb::cpu
