#include "kernels/cpu/binding.h"

#include <algorithm>
#include <concepts>
#include <stdexcept>
#include <utility>

#include "kernels/cpu/onednn.h"
#include "kernels/program/winograd.h"

namespace plumb::cpu {
const dnnl::memory::desc& Context::settle(BufferId buffer, const dnnl::memory::desc& wanted) {
  std::optional<dnnl::memory::desc>& layout = layouts[buffer];
  if (!layout) {
    layout = wanted;
    program.buffers[buffer].bytes = wanted.get_size();
    program.buffers[buffer].layout = layout_text(wanted);
  }
  return *layout;
}

dnnl::memory::data_type data_type_of(DType dtype) {
  return dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

dnnl::memory::desc any_layout(const std::vector<std::int64_t>& dims, DType dtype) {
  return {dims, data_type_of(dtype), dnnl::memory::format_tag::any};
}

dnnl::memory::desc plain_layout(const std::vector<std::int64_t>& dims, DType dtype) {
  dnnl::memory::dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return {dims, data_type_of(dtype), strides};
}

std::optional<ChannelLayout> channel_layout(const dnnl::memory::desc& layout) {
  using Tag = dnnl::memory::format_tag;
  const dnnl::memory::dims dims = dims_of(layout);
  if (dims.size() != 2 && dims.size() != 4) return std::nullopt;
  const auto is = [&](Tag tag) {
    return layout == dnnl::memory::desc(dims, data_type_of(DType::f32), tag) ||
           layout == dnnl::memory::desc(dims, data_type_of(DType::bf16), tag);
  };
  ChannelLayout form{.images = dims[0], .channels = dims[1], .block = dims[1]};
  if (dims.size() == 2) return is(Tag::nc) ? std::optional(form) : std::nullopt;
  form.pixels = dims[2] * dims[3];
  for (const auto& [tag, block] : {std::pair{Tag::nhwc, dims[1]},
                                   {Tag::nchw, std::int64_t{1}},
                                   {Tag::nChw8c, std::int64_t{8}},
                                   {Tag::nChw16c, std::int64_t{16}}}) {
    form.block = block;
    if (is(tag)) return form;
  }
  return std::nullopt;
}

void BoundOperands::add(int argument, dnnl::memory memory) {
  arguments_.push_back({argument, memory.get()});
  memories_.push_back(std::move(memory));
}

void BoundOperands::execute(const dnnl::primitive& primitive, const dnnl::stream& stream) const {
  dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive.get(), stream.get(),
                                                 static_cast<int>(arguments_.size()), arguments_.data()),
                          "could not execute a oneDNN primitive");
}

std::size_t Call::take_workspace(std::size_t bytes) {
  constexpr std::size_t kAlignment = 64;  // a cache line and the widest vector register
  const std::size_t offset = workspace_bytes_;
  workspace_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return offset;
}

Call::Place Call::add(int argument, BufferId buffer, const dnnl::memory::desc& wanted, bool is_input) {
  const dnnl::memory::desc& held = context_.settle(buffer, wanted);
  Operand operand{.argument = argument, .layout = wanted, .buffer = buffer, .is_input = is_input};
  if (held != wanted) {
    operand.workspace_offset = take_workspace(wanted.get_size());
    operand.held = held;
    const auto& engine = context_.engine;
    operand.reorder = dnnl::reorder(is_input ? dnnl::reorder::primitive_desc(engine, held, engine, wanted)
                                             : dnnl::reorder::primitive_desc(engine, wanted, engine, held));
  }
  operands_.push_back(std::move(operand));
  return {operands_.size() - 1};
}

Call::Place Call::raw(int argument, BufferId buffer, const dnnl::memory::desc& layout) {
  std::size_t& bytes = context_.program.buffers[buffer].bytes;
  bytes = std::max(bytes, layout.get_size());
  operands_.push_back({.argument = argument, .layout = layout, .buffer = buffer});
  return {operands_.size() - 1};
}

Call::Place Call::scratchpad(const dnnl::memory::desc& layout) {
  if (layout.get_size() == 0) return {};
  operands_.push_back({.argument = DNNL_ARG_SCRATCHPAD,
                       .layout = layout,
                       .workspace_offset = take_workspace(layout.get_size())});
  return {operands_.size() - 1};
}

Binder Call::finish(std::function<void(const BoundOperands&)> run) {
  instruction_.workspace_bytes = std::max(instruction_.workspace_bytes, workspace_bytes_);
  return [run = std::move(run), operands = operands_, engine = context_.engine, stream = context_.stream,
          lane = instruction_.lane](const Arena& arena) -> ComputeFn {
    BoundOperands bound(arena);
    std::vector<std::pair<dnnl::primitive, BoundOperands>> before, after;  // reorders
    for (const Operand& operand : operands) {
      const bool in_place = operand.workspace_offset == kNone;
      const dnnl::memory used(
          operand.layout, engine,
          in_place ? arena.data(operand.buffer) : arena.workspace(lane) + operand.workspace_offset);
      bound.add(operand.argument, used);
      if (!operand.reorder) continue;
      const dnnl::memory held(operand.held, engine, arena.data(operand.buffer));
      auto& [reorder, operands_of_reorder] = (operand.is_input ? before : after).emplace_back();
      reorder = operand.reorder;
      operands_of_reorder.add(DNNL_ARG_FROM, operand.is_input ? held : used);
      operands_of_reorder.add(DNNL_ARG_TO, operand.is_input ? used : held);
    }
    return [=] {
      for (const auto& [reorder, both] : before) both.execute(reorder, stream);
      run(bound);
      for (const auto& [reorder, both] : after) both.execute(reorder, stream);
    };
  };
}

namespace {

// Instructions of the runner and the communicator.
Binder prepare(Context&, Instruction&, const LoadBatch&) {
  return {};
}
Binder prepare(Context&, Instruction&, const Collective&) {
  return {};
}

template <typename T>
concept NotOfCpu = std::same_as<T, ConvNormBackwardData> || std::same_as<T, BatchNormStatistics> ||
    std::same_as<T, BatchNormFinalize> || std::same_as<T, BatchNormApply> ||
    std::same_as<T, BatchNormPairBackward> || std::same_as<T, BatchNormPoolBackward> ||
    std::same_as<T, BatchNormBackwardApply> || std::same_as<T, SamplePixels> ||
    std::same_as<T, ChannelProducts> || std::same_as<T, ProductNormStatistics> ||
    std::same_as<T, BlockEndForward> || std::same_as<T, MaskedGradient> ||
    std::same_as<T, ProductNormBackward> || std::same_as<T, BlockEndBackwardData> ||
    std::same_as<T, FindOverflow> || std::same_as<T, Recorded>;

Binder prepare(Context&, Instruction& instruction, const NotOfCpu auto&) {
  throw std::logic_error(instruction.name + " is an instruction that no CPU runs");
}

}  // namespace

Binder prepare_instruction(Context& context, Instruction& instruction) {
  instruction.workspace_bytes = 0;  // was an estimate
  if (instruction.engine == kWinograd) return prepare_winograd(context, instruction);
  return std::visit([&](const auto& operation) { return prepare(context, instruction, operation); },
                    instruction.operation);
}

}  // namespace plumb::cpu
