#include "kernels/cpu/binding.h"

#include <array>
#include <stdexcept>
#include <utility>

#include "kernels/cpu/onednn.h"

namespace plumb::cpu {
namespace {

constexpr std::size_t kAlignment = 64;  // bytes: a cache line and the widest vector register

// A primitive with its arguments in oneDNN's C form, so that running it constructs nothing.
struct BoundPrimitive {
  dnnl::primitive primitive;
  std::vector<dnnl::memory> memories;  // keep the handles below alive
  std::vector<dnnl_exec_arg_t> arguments;

  void add(int argument, dnnl::memory memory) {
    arguments.push_back({argument, memory.get()});
    memories.push_back(std::move(memory));
  }
  void run(const dnnl::stream& stream) const {
    dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive.get(), stream.get(),
                                                   static_cast<int>(arguments.size()), arguments.data()),
                            "could not execute a oneDNN primitive");
  }
};

}  // namespace

const dnnl::memory::desc& Context::settle(BufferId buffer, const dnnl::memory::desc& wanted) {
  std::optional<dnnl::memory::desc>& layout = layouts[buffer];
  if (!layout) {
    layout = wanted;
    program.buffers[buffer].bytes = wanted.get_size();
    program.buffers[buffer].layout = layout_text(wanted);
  }
  return *layout;
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

dnnl::memory::desc any_layout(const std::vector<std::int64_t>& dims) {
  return {dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
}

dnnl::memory::desc plain_layout(const std::vector<std::int64_t>& dims) {
  dnnl::memory::dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return {dims, dnnl::memory::data_type::f32, strides};
}

std::size_t Call::take_workspace(std::size_t bytes) {
  const std::size_t offset = workspace_bytes_;
  workspace_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return offset;
}

Call::Place Call::add(int argument, BufferId buffer, const dnnl::memory::desc& wanted, bool is_input) {
  const dnnl::memory::desc& held = context_.settle(buffer, wanted);
  Operand operand{.argument = argument, .buffer = buffer, .layout = wanted};
  if (held != wanted) {
    operand.place = is_input ? Operand::Place::copied_in : Operand::Place::copied_out;
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
  operands_.push_back({.argument = argument, .buffer = buffer, .layout = layout});
  return {operands_.size() - 1};
}

Call::Place Call::scratchpad(const dnnl::memory::desc& layout) {
  if (layout.get_size() == 0) return {};
  operands_.push_back({.argument = DNNL_ARG_SCRATCHPAD,
                       .layout = layout,
                       .place = Operand::Place::workspace,
                       .workspace_offset = take_workspace(layout.get_size())});
  return {operands_.size() - 1};
}

Binder Call::finish(dnnl::primitive primitive) {
  std::vector<std::pair<int, dnnl::memory::desc>> arguments;
  for (const Operand& operand : operands_) arguments.emplace_back(operand.argument, operand.layout);
  return finish(Body([primitive = std::move(primitive), arguments = std::move(arguments),
                      engine = context_.engine,
                      stream = context_.stream](const Addresses& addresses) -> ComputeFn {
    BoundPrimitive bound{.primitive = primitive};
    for (std::size_t i = 0; i < arguments.size(); ++i)
      bound.add(arguments[i].first, dnnl::memory(arguments[i].second, engine, addresses.as<std::byte>({i})));
    return [bound = std::move(bound), stream] { bound.run(stream); };
  }));
}

Binder Call::finish(Body body) {
  instruction_.workspace_bytes = std::max(instruction_.workspace_bytes, workspace_bytes_);
  return [body = std::move(body), operands = operands_, engine = context_.engine, stream = context_.stream,
          lane = instruction_.lane](const Arena& arena) -> ComputeFn {
    std::vector<std::byte*> addresses;
    std::vector<BoundPrimitive> before, after;
    for (const Operand& operand : operands) {
      const bool in_place = operand.place == Operand::Place::buffer;
      addresses.push_back(in_place ? arena.data(operand.buffer)
                                   : arena.workspace(lane) + operand.workspace_offset);
      if (in_place || operand.place == Operand::Place::workspace) continue;
      const bool copied_in = operand.place == Operand::Place::copied_in;
      const dnnl::memory held(operand.held, engine, arena.data(operand.buffer));
      const dnnl::memory copy(operand.layout, engine, addresses.back());
      BoundPrimitive reorder{.primitive = operand.reorder};
      reorder.add(DNNL_ARG_FROM, copied_in ? held : copy);
      reorder.add(DNNL_ARG_TO, copied_in ? copy : held);
      (copied_in ? before : after).push_back(std::move(reorder));
    }
    ComputeFn run = body(Addresses(std::move(addresses)));
    if (before.empty() && after.empty()) return run;
    return [before = std::move(before), run = std::move(run), after = std::move(after), stream] {
      for (const BoundPrimitive& reorder : before) reorder.run(stream);
      run();
      for (const BoundPrimitive& reorder : after) reorder.run(stream);
    };
  };
}

}  // namespace plumb::cpu
