#include "tests/cuda_sass/figures.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "tests/cuda_sass/memory_use.h"

namespace plumb::sass {
namespace {

// Compute capability 9.0.
constexpr int kRegisters = 65536, kPartitions = 4, kRegisterUnit = 256;  // allocation unit per warp
constexpr int kMostWarps = 64, kMostBlocks = 32;
constexpr int kSharedBytes = 228 * 1024, kSharedUnit = 128, kSystemSharedBytes = 1024;

// An assumption, not measured here: 480 cycles on an idle H100 (Luo et al. 2024, arXiv:2402.13499, latency
// table) are 0.27 us at 1.76 GHz; doubled for queueing under full load, and rounded up.
constexpr double kLatencySeconds = 600e-9;
constexpr double kH100BytesPerSecond = 3.35e12, kH200BytesPerSecond = 4.8e12;  // NVIDIA's datasheets, SXM
constexpr int kMultiprocessors = 132;

int round_up(int value, int unit) {
  return (value + unit - 1) / unit * unit;
}

std::string kibibytes(double bytes) {
  std::ostringstream text;
  text << std::round(bytes / 1024 * 10) / 10;
  return text.str();
}

bool is_other_dtype(const std::string& name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  return has("bf16") || (has("f32") && !has("f16"));
}

void add_row(std::ostringstream& text, const KernelCode& kernel, const Wanted& wanted) {
  const BlockShape block{
      .threads = wanted.threads,
      .registers = kernel.registers,
      .shared_bytes = std::max(kernel.shared_bytes, kSystemSharedBytes) + wanted.dynamic_shared_bytes};
  const int blocks = resident_blocks(block), warps = blocks * wanted.threads / 32;
  const MemoryUse use = memory_use(kernel);
  text << "| `" << kernel.name << "` | " << kernel.registers << " | " << kibibytes(block.shared_bytes)
       << " | " << wanted.threads << " | " << blocks << " / " << warps << " | ";
  if (wanted.copied_bytes > 0)
    text << kibibytes(wanted.copied_bytes) << " KiB a block";
  else
    text << use.loads_in_flight << " / " << use.bytes_in_flight;
  text << " | "
       << kibibytes(wanted.copied_bytes > 0 ? static_cast<double>(wanted.copied_bytes) * blocks
                                            : static_cast<double>(use.bytes_in_flight) * warps * 32)
       << " |\n";
}

}  // namespace

int resident_blocks(const BlockShape& block) {
  const int warps = (block.threads + 31) / 32;
  const int warp_registers = round_up(block.registers * 32, kRegisterUnit);
  const int by_registers = kRegisters / kPartitions / warp_registers * kPartitions / warps;
  const int by_shared = kSharedBytes / round_up(block.shared_bytes, kSharedUnit);
  return std::min({by_registers, by_shared, kMostWarps / warps, kMostBlocks});
}

double wanted_bytes_in_flight(double bytes_per_second, double latency_seconds, int multiprocessors) {
  return bytes_per_second * latency_seconds / multiprocessors;
}

std::string figures_table(const std::vector<KernelCode>& kernels, const std::vector<Wanted>& table) {
  std::ostringstream text;
  const auto wanted_by = [](double bytes_per_second) {
    return kibibytes(wanted_bytes_in_flight(bytes_per_second, kLatencySeconds, kMultiprocessors));
  };
  text
      << "| kernel, sm_90 | registers | shared KiB | threads | resident blocks / warps | loads in flight per "
         "thread / bytes | KiB in flight (wanted: "
      << wanted_by(kH100BytesPerSecond) << " H100, " << wanted_by(kH200BytesPerSecond)
      << " H200) |\n|---|---|---|---|---|---|---|\n";
  for (std::size_t row = 0; row < table.size(); ++row) {
    if (table[row].threads == 0) continue;
    for (const KernelCode& kernel : kernels) {
      if (kernel.architecture == 90 && row_of(table, kernel.name) == row && !is_other_dtype(kernel.name))
        add_row(text, kernel, table[row]);
    }
  }
  return text.str();
}

}  // namespace plumb::sass
