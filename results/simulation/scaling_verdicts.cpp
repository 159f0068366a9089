#include "results/simulation/scaling_verdicts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "base/paths.h"
#include "base/text.h"
#include "base/units.h"
#include "results/anomalies/flags.h"
#include "results/record/schema.h"
#include "results/scaling/scaling_loss.h"
#include "results/scaling/step_waits.h"

namespace plumb {
namespace {

std::string explanation_of(const ScalingBasis& basis, const PredictedCase& predicted,
                           const MeasuredCase& measured) {
  const double longer = measured_step(basis, measured) - predicted.step_seconds;
  std::string text = fmt::format("{:.5g} images/s is {} % below the predicted {:.5g}: a step takes {} longer",
                                 measured.images_per_second,
                                 percent_text(1 - measured.images_per_second / predicted.images_per_second),
                                 predicted.images_per_second, duration_text(longer));
  std::string list;
  const std::vector<LostTime> parts = lost_time(basis, predicted, measured);
  for (const LostTime& part : parts)
    if (part.seconds > 0.05 * longer || &part == &parts.front())
      append_part(list, fmt::format("{} {}", duration_text(part.seconds), part.name));
  text += ", " + list;
  double named = 0;
  for (const LostTime& part : parts) named += std::max(0.0, part.seconds);
  if (named > 1.05 * longer) text += fmt::format(", and {} less elsewhere", duration_text(named - longer));
  if (parts.front().part == LostTime::Part::communication && !predicted.slowest_pair.empty())
    text += fmt::format("; the slowest link is between {}", predicted.slowest_pair);
  return text;
}

class VerdictWriter {
 public:
  VerdictWriter(const ScalingBasis& basis, const ScalingPrediction& prediction)
      : basis_(basis), prediction_(prediction) {}

  std::vector<Note> write() {
    const MeasuredCase* before = nullptr;
    for (const MeasuredCase& measured : basis_.measured) {
      const auto predicted = std::ranges::find(prediction_.cases, measured.layout, &PredictedCase::layout);
      if (predicted != prediction_.cases.end()) judge(*predicted, measured);
      if (before && before->layout.devices() < measured.layout.devices()) compare_steps(*before, measured);
      before = &measured;
    }
    return std::move(verdicts_);
  }

 private:
  void add(const char* kind, Layout layout, std::string reason) {
    verdicts_.push_back({kind, std::move(reason), layout.name()});
  }

  void judge(const PredictedCase& predicted, const MeasuredCase& measured) {
    if (measured.layout.devices() == 1) return judge_alone(measured);
    if (measured.images_per_second > (1 + kRejectAbove) * predicted.bound_images_per_second)
      add("REJECT", measured.layout,
          fmt::format("{:.5g} images/s is {} % faster than these links allow, {:.5g}: a device alone "
                      "computes for {}, and its buckets can't be sent before {}; the timing is wrong, or "
                      "links.json or the profile is of something else",
                      measured.images_per_second,
                      percent_text(measured.images_per_second / predicted.bound_images_per_second - 1),
                      predicted.bound_images_per_second, duration_text(basis_.fastest_seconds),
                      duration_text(predicted.bound_seconds)));
    else if (measured.images_per_second < (1 - kLeastLoss) * predicted.images_per_second)
      add("EXPLAIN", measured.layout, explanation_of(basis_, predicted, measured));
    const std::optional<BusShare> bus = bus_share(prediction_, measured);
    if (bus && bus->reached < kLeastBusShare * bus->expected)
      add("EXPLAIN", measured.layout,
          fmt::format("the run's own buckets reached {:.3g} GB/s of bus bandwidth, {:.2f} of the {:.3g} GB/s "
                      "that links.json gives for their sizes; something else uses the link, or computing "
                      "keeps the ranks from sending",
                      bus->reached / kGiga, bus->reached / bus->expected, bus->expected / kGiga));
  }

  // A device alone has no links; its bound is the roofline.
  void judge_alone(const MeasuredCase& measured) {
    const double step = measured_step(basis_, measured);
    if (!(basis_.roofline_seconds > (1 + kRejectAbove) * step)) return;
    add("REJECT", measured.layout,
        fmt::format(
            "a step of {} is shorter than its roofline, {}, at the device's peaks; the timing is wrong",
            duration_text(step), duration_text(basis_.roofline_seconds)));
  }

  void compare_steps(const MeasuredCase& fewer, const MeasuredCase& more) {
    const double before = measured_step(basis_, fewer), after = measured_step(basis_, more);
    if (after >= (1 - kLeastFall) * before) return;
    add("FLAG", more.layout,
        fmt::format("a step takes {}, {} % less than the {} of {}n{}g, though more devices can't shorten "
                    "it; the smaller case was held back, or one of them was timed wrongly",
                    duration_text(after), percent_text(1 - after / before), duration_text(before),
                    fewer.layout.nodes, fewer.layout.devices_per_node));
  }

  const ScalingBasis& basis_;
  const ScalingPrediction& prediction_;
  std::vector<Note> verdicts_;
};

}  // namespace

double measured_step(const ScalingBasis& basis, const MeasuredCase& measured) {
  return measured.layout.devices() * static_cast<double>(basis.configuration.batch_per_device) /
         measured.images_per_second;
}

std::vector<LostTime> lost_time(const ScalingBasis& basis, const PredictedCase& predicted,
                                const MeasuredCase& measured) {
  const double step = measured_step(basis, measured);
  const bool is_log = measured.record.step_seconds.empty();
  const std::optional<StepWaits> waits = is_log ? std::nullopt : step_waits(measured.record, step);
  const bool on_gpu = measured.record.device == "cuda";
  const std::string rest = on_gpu ? "in computing and gaps between launches" : "in computing and gaps";
  double left = step - predicted.step_seconds;
  std::vector<LostTime> parts;
  const auto take = [&](LostTime::Part part, double seconds, std::string name) {
    parts.push_back({part, seconds, std::move(name)});
    left -= seconds;
  };
  if (waits) {
    const bool together = !waits->ranks_known || waits->slow_ranks <= 0;
    take(LostTime::Part::communication,
         waits->communication - predicted.exposed_seconds - (together ? predicted.jitter_seconds : 0),
         waits->ranks_known ? "in exposed communication" : "in exposed communication and waiting for ranks");
    if (!together)
      take(LostTime::Part::slow_ranks, waits->slow_ranks - predicted.jitter_seconds,
           "waiting for " + (waits->slow_rank_names.empty() ? "slow ranks" : waits->slow_rank_names));
    take(LostTime::Part::data, waits->data - basis.data_wait_seconds, "waiting for data");
  }
  parts.push_back({waits ? LostTime::Part::computing : LostTime::Part::unknown, left,
                   waits ? rest : "in parts that its log doesn't tell apart; name its run folder"});
  std::ranges::stable_sort(parts, std::greater(), &LostTime::seconds);
  return parts;
}

std::optional<BusShare> bus_share(const ScalingPrediction& prediction, const MeasuredCase& measured) {
  const CollectiveCost cost(prediction.links, measured.layout);
  double bytes = 0, seconds = 0, expected = 0;
  for (const CollectiveRecord& one : measured.record.collectives) {
    if (!one.kind.starts_with("allreduce") || one.bytes <= 0 || !(one.seconds.min > 0)) continue;
    const double size = static_cast<double>(one.bytes);
    bytes += size * bus_factor(one.kind, measured.layout.devices());
    seconds += one.seconds.min;
    expected += cost.seconds(one.kind, size);
  }
  if (!(seconds > 0) || !(expected > 0)) return {};
  return BusShare{bytes / seconds, bytes / expected};
}

std::vector<Note> scaling_verdicts(const ScalingBasis& basis, const ScalingPrediction& prediction) {
  if (prediction.what_if.any()) return {};
  return VerdictWriter(basis, prediction).write();
}

}  // namespace plumb
