#include "kernels/cpu/binding.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/onednn.h"

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

namespace {

bool has(dnnl::cpu_isa isa) {
  const auto all = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  return (all & static_cast<unsigned>(isa)) == static_cast<unsigned>(isa);
}

}  // namespace

int winograd_lanes() {
  if (has(dnnl::cpu_isa::avx512_core)) return 16;
  return has(dnnl::cpu_isa::avx2) ? 8 : 0;
}

double bf16_rate() {
  if (has(dnnl::cpu_isa::avx512_core_amx)) return 16;
  return has(dnnl::cpu_isa::avx512_core_bf16) ? 2 : 0;
}

std::optional<ChannelLayout> channel_layout(const dnnl::memory::desc& layout) {
  const dnnl::memory::dims dims = dims_of(layout);
  const Blocking blocking = blocking_of(layout);
  const bool has_pixels = dims.size() == 4, is_blocked = !blocking.blocks.empty();
  if (dims.size() != 2 && !has_pixels) return std::nullopt;
  if (is_blocked && (blocking.blocks.size() > 1 || blocking.blocks[0].dimension != 1)) return std::nullopt;
  const std::int64_t width = has_pixels ? dims[3] : 1, pixels = has_pixels ? dims[2] * width : 1;
  for (const std::int64_t block :
       is_blocked ? std::vector{blocking.blocks[0].length} : std::vector<std::int64_t>{dims[1], 1}) {
    const ChannelLayout form{.images = dims[0], .channels = dims[1], .pixels = pixels, .block = block};
    const bool strides_blocks = is_blocked || block == 1;
    dnnl::memory::dims extents = dims;
    if (strides_blocks) extents[1] = form.blocks();
    const std::int64_t strides[]{form.image_stride(), strides_blocks ? pixels * block : 1, width * block,
                                 block};
    bool matches = true;
    for (std::size_t i = 0; i < dims.size(); ++i)  // strides of dimensions of size 1 are arbitrary
      matches = matches && (extents[i] == 1 || blocking.strides[i] == strides[i]);
    if (matches) return form;
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
    BoundOperands bound;
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

}  // namespace plumb::cpu
