#include "tests/kernels/program_text.h"

#include "base/text.h"

namespace plumb {
namespace {

// An update lists every parameter.
constexpr std::size_t kMostOperands = 24;

std::string line_of(const Buffer& buffer) {
  return fmt::format("buffer {} {} {} [{}] {} bytes{}{}", buffer.name, name_of(buffer.role),
                     name_of(buffer.dtype), fmt::join(buffer.dims, " "), buffer.bytes,
                     buffer.persistent ? ", kept" : "", buffer.sharded ? ", sharded" : "");
}

std::string line_of(const Program& program, const Instruction& instruction) {
  std::string line = fmt::format("step {} {}:", instruction.name, instruction.kind());
  std::vector<BufferUse> uses = instruction.uses();
  const std::size_t operands = uses.size();
  if (operands > kMostOperands) uses.resize(3);
  for (const BufferUse& use : uses) {
    const char* access = use.access == Access::read ? "<" : use.access == Access::write ? ">" : "<>";
    line += fmt::format(" {}{}{}", use.operand, access, program.buffers[use.buffer].name);
  }
  if (operands > uses.size()) line += fmt::format(" … {} operands", operands);
  line += fmt::format(" | {:.0f} MACs, {:.0f} bytes, workspace {}", instruction.work.macs,
                      instruction.work.bytes, instruction.workspace_bytes);
  if (instruction.lane != Lane::compute) line += fmt::format(", lane {}", name_of(instruction.lane));
  return line;
}

}  // namespace

std::vector<std::string> program_lines(const Program& program,
                                       const std::function<bool(std::string_view)>& keeps) {
  std::vector<std::string> lines;
  for (const Buffer& buffer : program.buffers)
    if (keeps(buffer.name) && buffer.role != Role::optimizer) lines.push_back(line_of(buffer));
  for (const Instruction& instruction : program.instructions)
    if (keeps(instruction.name)) lines.push_back(line_of(program, instruction));
  return lines;
}

}  // namespace plumb
