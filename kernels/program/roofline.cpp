#include "kernels/program/roofline.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "kernels/program/winograd.h"

namespace plumb {

double peak_flops_per_second(const DeviceLimits& limits, Precision precision) {
  const auto found = limits.flops_per_second.find(precision);
  if (found != limits.flops_per_second.end()) return found->second;
  std::string known;
  for (const auto& [candidate, flops] : limits.flops_per_second)
    append_part(known, fmt::format("--{}", name_of(candidate)));
  throw Error(ExitCode::usage, "--{0}: the device {1} does not support it; pass one of {2}",
              name_of(precision), limits.name, known);
}

double roofline_seconds(const Work& work, const DeviceLimits& limits, Precision precision) {
  return std::max(2 * work.macs / peak_flops_per_second(limits, precision),
                  work.bytes / limits.bytes_per_second);
}

Precision precision_of(const Program& program, const Instruction& instruction, Precision run) {
  if (run != Precision::fp16 && run != Precision::bf16) return run;
  const std::vector<BufferUse> uses = instruction.uses();
  const bool in_half = std::ranges::any_of(
      uses, [&](const BufferUse& use) { return bytes_of(program.buffers[use.buffer].dtype) == 2; });
  if ((in_half && instruction.engine != kWinograd) || uses.empty()) return run;
  return program.allow_tf32 ? Precision::tf32 : Precision::fp32;
}

Roofline roofline(const Program& program, const DeviceLimits& limits, Precision precision) {
  Roofline total;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.lane != Lane::compute) continue;
    const double seconds =
        roofline_seconds(instruction.work, limits, precision_of(program, instruction, precision));
    total.seconds += seconds;
    total.flops += 2 * instruction.work.macs;
    total.bytes += instruction.work.bytes;
    if (seconds == roofline_seconds({.bytes = instruction.work.bytes}, limits, precision))
      total.bytes_seconds += seconds;
  }
  return total;
}

}  // namespace plumb
