#include "kernels/targets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <iterator>

namespace plumb {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

// Allowance for the driver's context, cuDNN, NCCL and memory reserved by the GPU. Above the use of a bare
// process in nvidia-smi on each of these GPUs (0.3 to 0.6 GiB).
constexpr double kContextReserve = 1.0 * kGiB;

// Sustained fractions of datasheet peaks for long kernels: large products on tensor cores (all precisions but
// strict fp32), streams through main memory. Assumed for every GPU until measured.
constexpr double kSustainedTensorFlops = 0.8;
constexpr double kSustainedBytes = 0.9;

DeviceLimits gpu(std::string name, std::map<Precision, double> tera_flops, double bytes_per_second,
                 double nominal_bytes, int compute_capability, std::string source) {
  for (auto& [precision, flops] : tera_flops)
    flops *= kTera * (precision == Precision::fp32 ? 1 : kSustainedTensorFlops);
  return {.name = std::move(name),
          .kind = DeviceKind::cuda,
          .flops_per_second = std::move(tera_flops),
          .bytes_per_second = bytes_per_second * kSustainedBytes,
          .memory_bytes = nominal_bytes - kContextReserve,
          .compute_capability = compute_capability,
          .source = std::move(source) +
                    ": 0.8 of its tensor peaks, 0.9 of its bandwidth (assumed sustained), 1 GiB of " +
                    "memory left to the context"};
}

// Dense peaks at boost clock from the vendor's datasheets (half of the figures "with sparsity").
// fp32 is strict: no tensor cores. tf32 and bf16 need sm_80; V100 and T4 have neither.
std::vector<DeviceLimits> make_targets() {
  using enum Precision;
  const std::map<Precision, double> volta{{fp32, 15.7}, {fp16, 125}};
  const std::map<Precision, double> ampere{{fp32, 19.5}, {tf32, 156}, {fp16, 312}, {bf16, 312}};
  const std::map<Precision, double> hopper{{fp32, 67}, {tf32, 494.7}, {fp16, 989.4}, {bf16, 989.4}};
  const std::map<Precision, double> turing{{fp32, 8.1}, {fp16, 65}};
  const std::string v100 = "NVIDIA V100 datasheet (SXM2)";
  const std::string a100 = "NVIDIA A100 datasheet (SXM4)";
  return {
      gpu("v100-16gb", volta, 900 * kGiga, 16 * kGiB, 70, v100),
      gpu("v100-32gb", volta, 900 * kGiga, 32 * kGiB, 70, v100),
      gpu("a100-40gb", ampere, 1555 * kGiga, 40 * kGiB, 80, a100),
      gpu("a100-80gb", ampere, 2039 * kGiga, 80 * kGiB, 80, a100),
      gpu("h100", hopper, 3350 * kGiga, 80 * kGiB, 90, "NVIDIA H100 datasheet (SXM5 80GB)"),
      // nvidia-smi shows 143,771 MiB, 140.4 GiB.
      gpu("h200", hopper, 4800 * kGiga, 140 * kGiB, 90, "NVIDIA H200 datasheet (SXM 141GB)"),
      // ECC takes 1/16 of GDDR6.
      gpu("t4", turing, 320 * kGiga, 15 * kGiB, 75, "NVIDIA T4 datasheet, 1/16 of memory left to ECC"),
      {.name = "cpu",
       .kind = DeviceKind::cpu,
       .flops_per_second = {{fp32, 16 * 2.5e9 * 32}},
       .bytes_per_second = 100 * kGiga,
       .memory_bytes = 64 * kGiB,
       .in_host_memory = true,
       .threads = 16,
       .source =
           "an assumed server: 16 cores at 2.5 GHz, two 8-wide FMAs per cycle, four channels of memory"},
  };
}

// FLOPs per clock and multiprocessor (2 per multiply-add), dense: NVIDIA's architecture whitepapers (Volta,
// Turing, GA100, GA102, Ada, Hopper, Blackwell).
struct PerClock {
  int compute_capability;
  double fp32, tf32, fp16;
};
constexpr PerClock kPerClock[] = {{70, 128, 0, 1024},     {75, 128, 0, 1024},   {80, 128, 1024, 2048},
                                  {86, 256, 512, 1024},   {89, 256, 512, 1024}, {90, 256, 2048, 4096},
                                  {100, 256, 4096, 8192}, {120, 256, 512, 1024}};

// "NVIDIA H200" gives "h200"; "Tesla V100-SXM2-32GB" gives "v100-16gb" or "v100-32gb" by nearest memory size.
// Cards have lower clocks and other memory than the SXM modules: "NVIDIA H100 PCIe", "NVIDIA H200 NVL".
const DeviceLimits* target_of(const GpuProperties& gpu) {
  for (const char* card : {"PCIe", "PCIE", "NVL"})
    if (gpu.name.find(card) != std::string::npos) return nullptr;
  const DeviceLimits* best = nullptr;
  for (const DeviceLimits& target : targets()) {
    std::string model = target.name.substr(0, target.name.find('-'));
    std::transform(model.begin(), model.end(), model.begin(),
                   [](unsigned char c) { return std::toupper(c); });
    if (target.kind != DeviceKind::cuda || target.compute_capability != gpu.compute_capability) continue;
    if (gpu.name.find(" " + model) == std::string::npos) continue;
    const auto distance = [&](const DeviceLimits& t) { return std::abs(t.memory_bytes - gpu.memory_bytes); };
    if (!best || distance(target) < distance(*best)) best = &target;
  }
  return best;
}

}  // namespace

DeviceLimits limits_of(const GpuProperties& gpu) {
  DeviceLimits limits;
  if (const DeviceLimits* target = target_of(gpu)) {
    limits = *target;
  } else {
    const auto* per_clock =
        std::ranges::lower_bound(kPerClock, gpu.compute_capability, {}, &PerClock::compute_capability);
    if (per_clock == std::end(kPerClock)) --per_clock;
    const double clocks = gpu.multiprocessors * gpu.clock_hz;
    limits.flops_per_second = {{Precision::fp32, per_clock->fp32 * clocks},
                               {Precision::fp16, per_clock->fp16 * clocks * kSustainedTensorFlops}};
    if (gpu.compute_capability >= 80) {
      limits.flops_per_second[Precision::tf32] = per_clock->tf32 * clocks * kSustainedTensorFlops;
      limits.flops_per_second[Precision::bf16] = per_clock->fp16 * clocks * kSustainedTensorFlops;
    }
    limits.bytes_per_second = gpu.memory_bytes_per_second * kSustainedBytes;
    limits.source = "multiprocessors and clocks that the driver reports, with NVIDIA's rates per clock";
  }
  limits.name = gpu.name;
  limits.kind = DeviceKind::cuda;
  limits.memory_bytes = gpu.memory_bytes;
  limits.compute_capability = gpu.compute_capability;
  return limits;
}

std::string_view name_of(DeviceKind kind) {
  return kind == DeviceKind::cuda ? "cuda" : "cpu";
}

std::string_view name_of(Precision precision) {
  static constexpr std::array<std::string_view, 4> kNames{"fp32", "tf32", "fp16", "bf16"};
  return kNames.at(static_cast<std::size_t>(precision));
}

const std::vector<DeviceLimits>& targets() {
  static const std::vector<DeviceLimits> all = make_targets();
  return all;
}

std::optional<DeviceLimits> find_target(std::string_view name) {
  const auto found = std::ranges::find(targets(), name, &DeviceLimits::name);
  if (found == targets().end()) return std::nullopt;
  return *found;
}

}  // namespace plumb
