#include "launch/hosts/screening.h"

#include <algorithm>
#include <map>
#include <set>

#include "results/statistics/robust.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

// How much slower a device is than the median of its kind, in time per image, however alike the others are;
// and in 1.4826 MAD (Iglewicz and Hoaglin 1993).
constexpr double kLeastEffect = 0.05, kDeviations = 3.5;
constexpr std::size_t kLeastDevices = 3;

using RunMember = std::optional<ScreenRun> ScreenedDevice::*;

// Indices of devices with such a run, by the devices' name.
std::map<std::string, std::vector<std::size_t>> devices_by_name(const std::vector<ScreenedDevice>& devices,
                                                                RunMember run) {
  std::map<std::string, std::vector<std::size_t>> found;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (devices[i].*run) found[devices[i].name].push_back(i);
  return found;
}

// Fills the runs' shares of the medians, and returns the devices that are slow compared with others of their
// name: by times, as speeds that vary by a fifth leave no room between slow and zero.
std::vector<std::size_t> find_slow_runs(std::vector<ScreenedDevice>& devices, RunMember run,
                                        double& smallest_loss_shown) {
  std::vector<std::size_t> slow;
  for (const auto& [name, indices] : devices_by_name(devices, run)) {
    std::vector<double> speeds, times;  // images/s, seconds per image
    for (const std::size_t i : indices) speeds.push_back((devices[i].*run)->images_per_second);
    for (const double speed : speeds) times.push_back(1 / speed);
    const double usual = median(speeds), usual_time = median(times);
    const double most =
        usual_time + std::max(kLeastEffect * usual_time, kDeviations * median_deviation(times, usual_time));
    if (indices.size() >= kLeastDevices)
      smallest_loss_shown = std::max(smallest_loss_shown, 1 - usual_time / most);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      (devices[indices[i]].*run)->share_of_median = usual > 0 ? speeds[i] / usual : 0;
      if (indices.size() >= kLeastDevices && times[i] > most) slow.push_back(indices[i]);
    }
  }
  return slow;
}

double speed_alone(const ScreenedDevice& device) {
  return device.alone ? device.alone->images_per_second : 0;
}

bool agree(const ComputedBits& one, const ComputedBits& other) {
  return one.losses == other.losses && one.after_run == other.after_run;
}

// The bits that more than half of the devices computed; null without a majority, or with fewer than three.
const ComputedBits* majority(const std::vector<ScreenedDevice>& devices,
                             const std::vector<std::size_t>& indices) {
  if (indices.size() < kLeastDevices) return nullptr;
  for (const std::size_t i : indices) {
    const auto alike = std::ranges::count_if(
        indices, [&](std::size_t j) { return agree(devices[j].bits, devices[i].bits); });
    if (2 * static_cast<std::size_t>(alike) > indices.size()) return &devices[i].bits;
  }
  return nullptr;
}

// Backward computes gradients in about the reverse of public order.
std::string first_odd_tensor(const std::vector<TensorChecksum>& own,
                             const std::vector<TensorChecksum>& usual) {
  if (own.size() != usual.size()) return "";
  for (std::size_t i = own.size(); i-- > 0;)
    if (own[i].gradient != usual[i].gradient) return own[i].name + "'s gradient";
  for (std::size_t i = own.size(); i-- > 0;)
    if (own[i].parameter != usual[i].parameter) return own[i].name;
  return "";
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
  odd.tensor = first_odd_tensor(own.after_first, usual.after_first);
  return odd;
}

}  // namespace

ScreenRun screen_run_of(const RunRecord& record, const std::vector<ReferenceSpeed>& references) {
  ScreenRun run{.images_per_second = record.images_per_second.mean};
  if (const ReferenceSpeed* reference = find_reference(references, configuration_of(record)))
    run.reference = reference->images_per_second;
  if (record.gpus.empty()) return run;
  const GpuRecord& gpu = record.gpus.front();
  run.sm_clock_mhz = gpu.sm_clock_mhz.median;
  run.temperature_celsius = gpu.temperature_celsius.max;
  run.throttle_reasons = throttle_reasons_text(gpu);
  return run;
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

ScreenReport judge_devices(const std::vector<std::string>& hosts, std::vector<ScreenedDevice> devices) {
  ScreenReport report{.devices = std::move(devices), .hosts = hosts};
  std::ranges::stable_sort(report.devices, std::ranges::greater(), speed_alone);
  double ignored = 0;
  const auto slow_alone = find_slow_runs(report.devices, &ScreenedDevice::alone, report.smallest_loss_shown);
  const auto slow_together = find_slow_runs(report.devices, &ScreenedDevice::together, ignored);
  for (const std::size_t i : slow_alone)
    report.slow.push_back({i, true, report.devices[i].alone->share_of_median});
  for (const std::size_t i : slow_together)
    if (!std::ranges::count(slow_alone, i))
      report.slow.push_back({i, false, report.devices[i].together->share_of_median});
  std::ranges::sort(report.slow, {}, &SlowDevice::device);
  report.odd = find_odd_bits(report.devices);
  for (const auto& [name, indices] : devices_by_name(report.devices, &ScreenedDevice::alone))
    report.was_judged |= indices.size() >= kLeastDevices;
  std::set<std::string> usable;
  for (const ScreenedDevice& device : report.devices) usable.insert(device.host);
  for (const ScreenedDevice& device : report.devices)
    if (!device.failure.empty()) usable.erase(device.host);
  for (const SlowDevice& slow : report.slow) usable.erase(report.devices[slow.device].host);
  for (const OddBits& odd : report.odd) usable.erase(report.devices[odd.device].host);
  for (const std::string& host : hosts)
    if (!usable.contains(host)) report.excluded.push_back(host);
  return report;
}

std::vector<std::string> ScreenReport::kept_hosts() const {
  std::vector<std::string> kept;
  for (const std::string& host : hosts)
    if (!std::ranges::count(excluded, host)) kept.push_back(host);
  return kept;
}

ExitCode ScreenReport::exit_code() const {
  const bool has_failed =
      std::ranges::any_of(devices, [](const ScreenedDevice& device) { return !device.failure.empty(); });
  return has_failed                    ? ExitCode::unavailable
         : slow.empty() && odd.empty() ? ExitCode::ok
                                       : ExitCode::regression;
}

}  // namespace plumb
