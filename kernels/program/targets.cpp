#include "kernels/program/targets.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace plumb {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;
constexpr double kMiB = 1024.0 * 1024.0;
constexpr double kGiB = 1024 * kMiB;

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

// Dense peaks at boost clock from NVIDIA's datasheets (half of the figures "with sparsity").
// fp32 is strict: no tensor cores. tf32 and bf16 need sm_80; V100 and T4 have neither.
// Memory in MiB is what nvidia-smi shows.
std::vector<DeviceLimits> make_targets() {
  using enum Precision;
  const std::map<Precision, double> volta{{fp32, 15.7}, {fp16, 125}};
  const std::map<Precision, double> ampere{{fp32, 19.5}, {tf32, 156}, {fp16, 312}, {bf16, 312}};
  const std::map<Precision, double> hopper{{fp32, 67}, {tf32, 494.7}, {fp16, 989.4}, {bf16, 989.4}};
  const std::map<Precision, double> hopper_nvl{{fp32, 60}, {tf32, 417.5}, {fp16, 835.5}, {bf16, 835.5}};
  const std::map<Precision, double> turing{{fp32, 8.1}, {fp16, 65}};
  const std::map<Precision, double> ada{{fp32, 91.6}, {tf32, 183}, {fp16, 362.05}, {bf16, 362.05}};
  // In these precisions Blackwell Ultra equals Blackwell; fp64, int8 and fp4 differ.
  const std::map<Precision, double> hgx_blackwell{{fp32, 75}, {tf32, 1100}, {fp16, 2250}, {bf16, 2250}};
  const std::map<Precision, double> grace_blackwell{{fp32, 80}, {tf32, 1250}, {fp16, 2500}, {bf16, 2500}};
  // The datasheet does not say whether its TF32 is dense; twice fp32 is this architecture's dense rate.
  const std::map<Precision, double> rtx_blackwell{{fp32, 120}, {tf32, 234}, {fp16, 500}, {bf16, 500}};
  const std::string v100 = "NVIDIA V100 datasheet (SXM2)";
  const std::string a100 = "NVIDIA A100 datasheet (SXM4)";
  const std::string gh200 = "NVIDIA GH200 Grace Hopper Superchip datasheet";
  return {
      gpu("v100-16gb", volta, 900 * kGiga, 16 * kGiB, 70, v100),
      gpu("v100-32gb", volta, 900 * kGiga, 32 * kGiB, 70, v100),
      gpu("a100-40gb", ampere, 1555 * kGiga, 40 * kGiB, 80, a100),
      gpu("a100-80gb", ampere, 2039 * kGiga, 80 * kGiB, 80, a100),
      gpu("h100", hopper, 3350 * kGiga, 80 * kGiB, 90, "NVIDIA H100 datasheet (SXM5 80GB)"),
      gpu("h100-nvl", hopper_nvl, 3900 * kGiga, 95'830 * kMiB, 90, "NVIDIA H100 NVL datasheet (94GB)"),
      // nvidia-smi shows 143,771 MiB, 140.4 GiB.
      gpu("h200", hopper, 4800 * kGiga, 140 * kGiB, 90, "NVIDIA H200 datasheet (SXM 141GB)"),
      gpu("gh200-96gb", hopper, 4000 * kGiga, 97'871 * kMiB, 90, gh200 + " (96GB HBM3)"),
      gpu("gh200-144gb", hopper, 4900 * kGiga, 146'831 * kMiB, 90, gh200 + " (144GB HBM3e)"),
      gpu("b200", hgx_blackwell, 7700 * kGiga, 183'359 * kMiB, 100,
          "NVIDIA Blackwell datasheet (HGX B200, 180GB)"),
      gpu("gb200", grace_blackwell, 8000 * kGiga, 189'471 * kMiB, 100,
          "NVIDIA Blackwell datasheet (GB200 NVL72, 186GB)"),
      gpu("b300", hgx_blackwell, 7700 * kGiga, 275'040 * kMiB, 103,
          "NVIDIA Blackwell Ultra datasheet (HGX B300, 270GB)"),
      gpu("gb300", grace_blackwell, 8000 * kGiga, 284'208 * kMiB, 103,
          "NVIDIA Blackwell Ultra datasheet (GB300 NVL72, 279GB)"),
      gpu("rtx-pro-6000", rtx_blackwell, 1597 * kGiga, 97'887 * kMiB, 120,
          "NVIDIA RTX PRO 6000 Blackwell Server Edition datasheet"),
      gpu("l40s", ada, 864 * kGiga, 46'068 * kMiB, 89, "NVIDIA L40S datasheet"),
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
// Turing, GA100, GA102, Ada, Hopper, Blackwell). Three rows come from datasheets: dense fp16 TFLOP/s over
// multiprocessors and boost clock, to the next power of two.
//   10.3  B300: 2,250 of 148 at 1.92 GHz
//   11.0  Jetson T5000: 259, an eighth of its sparse FP4, of 20 at 1.57 GHz
//   12.1  GB10: 125, an eighth of its sparse FP4, of 48 at 2.42 GHz
struct PerClock {
  int compute_capability;
  double fp32, tf32, fp16;
};
constexpr PerClock kPerClock[] = {{70, 128, 0, 1024},     {75, 128, 0, 1024},     {80, 128, 1024, 2048},
                                  {86, 256, 512, 1024},   {89, 256, 512, 1024},   {90, 256, 2048, 4096},
                                  {100, 256, 4096, 8192}, {103, 256, 4096, 8192}, {110, 256, 4096, 8192},
                                  {120, 256, 512, 1024},  {121, 256, 512, 1024}};

// The last row that is not newer than the GPU.
const PerClock& per_clock_of(int compute_capability) {
  const auto newer =
      std::ranges::upper_bound(kPerClock, compute_capability, {}, &PerClock::compute_capability);
  return newer == std::begin(kPerClock) ? *newer : *(newer - 1);
}

// GPUs that are targets, by the names in the list of supported GPUs of NVIDIA's driver. Other names are other
// GPUs: cards with lower clocks ("NVIDIA H100 PCIe", "NVIDIA H200 NVL"), workstation editions, other memory
// ("NVIDIA A100-SXM-64GB"), slices ("NVIDIA H200 MIG 1g.18gb").
constexpr std::pair<std::string_view, std::string_view> kNamesOfDriver[] = {
    {"Tesla V100-SXM2-16GB", "v100-16gb"},
    {"Tesla V100-SXM2-32GB", "v100-32gb"},
    {"NVIDIA A100-SXM4-40GB", "a100-40gb"},
    {"NVIDIA A100-SXM4-80GB", "a100-80gb"},
    {"NVIDIA H100 80GB HBM3", "h100"},
    {"NVIDIA H100 NVL", "h100-nvl"},
    {"NVIDIA H200", "h200"},
    {"NVIDIA GH200 120GB", "gh200-96gb"},  // these two with the CPU's memory
    {"NVIDIA GH200 480GB", "gh200-96gb"},
    {"NVIDIA GH200 144G HBM3e", "gh200-144gb"},
    {"NVIDIA B200", "b200"},
    {"NVIDIA GB200", "gb200"},
    {"NVIDIA B300 SXM6 AC", "b300"},
    {"NVIDIA GB300", "gb300"},
    {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"},
    {"NVIDIA L40S", "l40s"},
    {"Tesla T4", "t4"}};

std::optional<DeviceLimits> target_of(const GpuProperties& gpu) {
  const auto* named = std::ranges::find(kNamesOfDriver, gpu.name, [](const auto& row) { return row.first; });
  if (named == std::end(kNamesOfDriver)) return std::nullopt;
  return find_target(named->second);
}

}  // namespace

DeviceLimits limits_of(const GpuProperties& gpu) {
  DeviceLimits limits;
  if (const std::optional<DeviceLimits> target = target_of(gpu)) {
    limits = *target;
  } else {
    const PerClock& per_clock = per_clock_of(gpu.compute_capability);
    const double clocks = gpu.multiprocessors * gpu.clock_hz;
    limits.flops_per_second = {{Precision::fp32, per_clock.fp32 * clocks},
                               {Precision::fp16, per_clock.fp16 * clocks * kSustainedTensorFlops}};
    if (gpu.compute_capability >= 80) {
      limits.flops_per_second[Precision::tf32] = per_clock.tf32 * clocks * kSustainedTensorFlops;
      limits.flops_per_second[Precision::bf16] = per_clock.fp16 * clocks * kSustainedTensorFlops;
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
  const std::string first_words = std::string(name) + "-";
  auto found = std::ranges::find(targets(), name, &DeviceLimits::name);
  if (found == targets().end())
    found = std::ranges::find_if(
        targets(), [&](const DeviceLimits& target) { return target.name.starts_with(first_words); });
  if (found == targets().end()) return std::nullopt;
  return *found;
}

}  // namespace plumb
