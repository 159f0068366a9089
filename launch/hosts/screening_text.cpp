// The report of plumbline screen as text and JSON.
#include <algorithm>

#include "base/paths.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "launch/host_names.h"
#include "launch/hosts/screening.h"

namespace plumb {
namespace {

std::string speed_text(const std::optional<ScreenRun>& run) {
  return run ? fmt::format("{:.1f}", run->images_per_second) : "-";
}

// "+1.2 %"
std::string share_text(const std::optional<ScreenRun>& run) {
  const double share = run ? run->share_of_median : 0;
  return share > 0 ? fmt::format("{:+.1f} %", 100 * (share - 1)) : "-";
}

// "1410 MHz, 83 C, power cap 83 %"; empty for CPUs.
std::string clocks_text(const ScreenRun& run) {
  std::string text;
  if (run.sm_clock_mhz > 0) append_part(text, fmt::format("{:.0f} MHz", run.sm_clock_mhz));
  if (run.temperature_celsius > 0) append_part(text, fmt::format("{:.0f} C", run.temperature_celsius));
  if (!run.throttle_reasons.empty()) append_part(text, run.throttle_reasons);
  return text;
}

std::string slow_device_text(const ScreenReport& report, const SlowDevice& slow) {
  const ScreenedDevice& device = report.devices[slow.device];
  const ScreenRun& run = slow.alone ? *device.alone : *device.together;
  const std::string clocks = clocks_text(run);
  return fmt::format("{} is slow: {} {:.1f} images/s, {} % below the median of its kind{}\n",
                     device_text(device), slow.alone ? "alone" : "with all others at work",
                     run.images_per_second, percent_text(1 - slow.share_of_median),
                     clocks.empty() ? "" : " (" + clocks + ")");
}

// What all reach at once of what they reach alone, in the median.
std::string together_text(const ScreenReport& report) {
  std::vector<double> shares;
  for (const ScreenedDevice& device : report.devices)
    if (device.alone && device.together && device.alone->images_per_second > 0)
      shares.push_back(device.together->images_per_second / device.alone->images_per_second);
  return shares.empty() ? ""
                        : fmt::format("all at once, devices reach {} % of what they reach alone (median)\n",
                                      percent_text(median(shares)));
}

// Of devices with a reference, the slowest and the fastest share of it.
std::string reference_line(const ScreenReport& report) {
  std::vector<double> shares;
  for (const ScreenedDevice& device : report.devices)
    if (device.alone && device.alone->reference > 0)
      shares.push_back(device.alone->images_per_second / device.alone->reference);
  if (shares.empty()) return "";
  const auto [low, high] = std::ranges::minmax_element(shares);
  return fmt::format("alone, devices reach {} to {} % of what Plumbline's own runs reached on such devices\n",
                     percent_text(*low), percent_text(*high));
}

std::string exclusion_text(const ScreenReport& report) {
  if (report.excluded.empty()) return "";
  const std::vector<std::string> kept = report.kept_hosts();
  std::string text = "leave out: " + short_host_list_text(report.excluded) + "\n";
  if (!kept.empty()) text += fmt::format("  mpirun -H {}\n", fmt::join(kept, ","));
  return text + fmt::format("  srun, sbatch --exclude={}\n", host_list_text(report.excluded));
}

}  // namespace

std::string device_text(const ScreenedDevice& device) {
  return device.gpu.empty() ? device.host : fmt::format("{} GPU {}", device.host, device.index);
}

std::string odd_text(const OddBits& odd, const std::vector<ScreenedDevice>& devices) {
  return fmt::format(
      "{} computes other bits than most devices of its kind: {}{}", device_text(devices[odd.device]),
      odd.loss == odd.usual
          ? fmt::format("its parameters differ after {}", counted(odd.iteration, "iteration"))
          : fmt::format("loss {} against {} in iteration {}", odd.loss, odd.usual, odd.iteration),
      odd.tensor.empty() ? "" : ", first in " + odd.tensor);
}

std::string screen_text(const ScreenReport& report) {
  const bool has_clocks = std::ranges::any_of(report.devices, [](const ScreenedDevice& device) {
    return (device.together && !clocks_text(*device.together).empty()) ||
           (device.alone && !clocks_text(*device.alone).empty());
  });
  std::vector<TextRow> rows{{"#", "device", "alone", "of median", "all at once", "of median", "kind"}};
  if (has_clocks) rows.front().push_back("clocks");
  for (const ScreenedDevice& device : report.devices) {
    if (!device.alone && !device.together) continue;
    rows.push_back({std::to_string(rows.size()), device_text(device), speed_text(device.alone),
                    share_text(device.alone), speed_text(device.together), share_text(device.together),
                    printable(shortened(device.name, 40))});
    if (has_clocks) rows.back().push_back(clocks_text(device.together ? *device.together : *device.alone));
  }
  std::string text = rows.size() > 1 ? padded_table(rows, "rlrrrrl") : "";
  text += together_text(report) + reference_line(report);
  for (const SlowDevice& slow : report.slow) text += slow_device_text(report, slow);
  for (const OddBits& odd : report.odd) text += odd_text(odd, report.devices) + "\n";
  for (const ScreenedDevice& device : report.devices)
    if (device.failure.empty() && !device.bits.failure.empty())
      text += fmt::format("{}: cannot compare its bits, as the deterministic run failed: {}\n",
                          device_text(device), printable(device.bits.failure));
  for (const ScreenedDevice& device : report.devices)
    if (!device.failure.empty())
      text += fmt::format("{} has no result: {}\n", device_text(device), printable(device.failure));
  if (report.slow.empty() && rows.size() > 1)
    text += report.can_tell() ? "no device is slow compared with others of its kind\n"
            : report.was_judged
                ? fmt::format(
                      "can't tell: devices of a kind vary so much that only a loss over {} % would show\n",
                      percent_text(report.smallest_loss_shown))
                : "can't tell: fewer than three devices of a kind do not show which one is slow\n";
  return text + exclusion_text(report);
}

void ScreenReport::fields(auto& self, auto&& each) {
  each("exit_code", static_cast<int>(self.exit_code()));
  each("devices", self.devices, Field{"fastest first"});
  each("can_tell", self.can_tell(), Field{"whether a slow device would show"});
  each("smallest_loss_shown", self.smallest_loss_shown,
       Field{"share of the speed alone, in the kind that varies most"});
  each("slow", self.slow);
  each("odd", self.odd, Field{"devices that compute other bits than most of their kind"});
  each("excluded", self.excluded, Field{"hosts to leave out"});
  each("mpirun_hosts", fmt::format("{}", fmt::join(self.kept_hosts(), ",")), Field{"for mpirun -H"});
  each("slurm_exclude", host_list_text(self.excluded), Field{"for srun --exclude"});
}

constexpr const char* kScreenSchema = "plumbline.screen/2";

nlohmann::ordered_json screen_json(const ScreenReport& report) {
  return document_json(kScreenSchema, report);
}

nlohmann::ordered_json screen_schema() {
  return json_schema<ScreenReport>(kScreenSchema, "Which devices plumbline screen --json found slow.");
}

}  // namespace plumb
