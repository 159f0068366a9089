#include "launch/hosts/screening.h"

#include <algorithm>

#include "base/text.h"
#include "results/statistics/robust.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

// How much slower a device is than the median of its kind, in time per image, however alike the others are;
// and in 1.4826 MAD (Iglewicz and Hoaglin 1993).
constexpr double kLeastEffect = 0.05, kDeviations = 3.5;

bool agree(const ComputedBits& one, const ComputedBits& other) {
  return one.losses == other.losses && one.tensors == other.tensors;
}

// The bits that more than half of the devices computed; null without a majority, or with fewer than three.
const ComputedBits* majority(const std::vector<ScreenedDevice>& devices,
                             const std::vector<std::size_t>& indices) {
  if (indices.size() < kLeastAlike) return nullptr;
  for (const std::size_t i : indices) {
    const auto alike = std::ranges::count_if(
        indices, [&](std::size_t j) { return agree(devices[j].bits, devices[i].bits); });
    if (2 * static_cast<std::size_t>(alike) > indices.size()) return &devices[i].bits;
  }
  return nullptr;
}

OddBits odd_bits(std::size_t device, const ComputedBits& own, const ComputedBits& usual) {
  OddBits odd{.device = device,
              .iteration = own.losses.size(),
              .loss = own.losses.back(),
              .usual = usual.losses.back()};
  const auto [expected, got] = std::ranges::mismatch(usual.losses, own.losses);
  if (expected != usual.losses.end() && got != own.losses.end())
    odd = {.device = device,
           .iteration = static_cast<std::size_t>(got - own.losses.begin()),
           .loss = *got,
           .usual = *expected};
  return odd;
}

}  // namespace

ScreenRun screen_run_of(const RunRecord& record, const std::vector<ReferenceSpeed>& references) {
  ScreenRun run{.images_per_second = record.images_per_second.mean};
  if (const ReferenceSpeed* reference = find_reference(references, configuration_of(record)))
    run.reference = reference->images_per_second;
  if (!record.gpus.empty()) run.throttle_reasons = throttle_reasons_text(record.gpus.front());
  return run;
}

std::map<std::string, DeviceKind> kinds_of(const std::vector<ScreenedDevice>& devices, RunMember run) {
  std::map<std::string, DeviceKind> kinds;
  for (const ScreenedDevice& device : devices)
    if (device.*run) kinds[device.name].devices.push_back(&device);
  for (auto& [name, kind] : kinds) {
    // By times, as speeds that vary by a fifth leave no room between slow and zero.
    std::vector<double> speeds, times;
    for (const ScreenedDevice* device : kind.devices) speeds.push_back((device->*run)->images_per_second);
    for (const double speed : speeds) times.push_back(1 / speed);
    const double usual_time = median(times);
    const double most =
        usual_time + std::max(kLeastEffect * usual_time, kDeviations * median_deviation(times, usual_time));
    kind.usual = median(speeds);
    kind.slow = 1 / most;
    kind.smallest_loss_shown = 1 - usual_time / most;
  }
  return kinds;
}

std::vector<OddBits> find_odd_bits(const std::vector<ScreenedDevice>& devices) {
  std::map<std::string, std::vector<std::size_t>> kinds;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (!devices[i].bits.losses.empty()) kinds[devices[i].name].push_back(i);
  std::vector<OddBits> odd;
  for (const auto& [name, indices] : kinds) {
    const ComputedBits* usual = majority(devices, indices);
    if (usual == nullptr) continue;
    for (const std::size_t i : indices)
      if (!agree(devices[i].bits, *usual)) odd.push_back(odd_bits(i, devices[i].bits, *usual));
  }
  return odd;
}

std::string device_text(const ScreenedDevice& device) {
  return device.gpu.empty() ? device.host : fmt::format("{} GPU {}", device.host, device.index);
}

std::string odd_text(const OddBits& odd) {
  return fmt::format(
      "computes other bits than most devices of its kind: {}",
      odd.loss == odd.usual
          ? fmt::format("its parameters differ after {}", counted(odd.iteration, "iteration"))
          : fmt::format("loss {} against {} in iteration {}", odd.loss, odd.usual, odd.iteration));
}

}  // namespace plumb
