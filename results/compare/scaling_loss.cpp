#include "results/compare/scaling_loss.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "base/text.h"
#include "results/scaling/slow_ranks.h"
#include "results/statistics/significance.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr std::size_t kMostLossesNamed = 3;
constexpr double kLeastShareNamed = 0.0005;  // of efficiency; less is 0.0 points

// The names that all runs with slow ranks agree in; empty if they differ.
std::string common_names(const std::vector<StepWaits>& runs) {
  std::set<std::string> names;
  for (const StepWaits& run : runs)
    if (!run.slow_rank_names.empty()) names.insert(run.slow_rank_names);
  return names.size() == 1 ? *names.begin() : "";
}

// Medians over the runs of a case.
struct CaseMedians {
  const Sample* of = nullptr;
  std::vector<double> per_device;  // images/s of each run
  double step_seconds = 0;         // images of a step / median throughput
  std::optional<StepWaits> waits;
};

// Nothing if no run has a figure.
std::optional<CaseMedians> medians_of(const Sample& one) {
  CaseMedians medians{.of = &one};
  const int devices = one.configuration.devices();
  const double batch = static_cast<double>(std::max<std::int64_t>(1, one.configuration.batch_per_device));
  std::vector<StepWaits> runs;
  for (const Measurement& run : one.runs) {
    const double per_device = run.images_per_second / devices;
    if (!std::isfinite(per_device) || per_device <= 0) continue;
    medians.per_device.push_back(per_device);
    if (!run.record) continue;
    if (const auto waits = step_waits(*run.record, batch / per_device)) runs.push_back(*waits);
  }
  if (medians.per_device.empty()) return {};
  medians.step_seconds = batch / median(medians.per_device);
  if (!runs.empty())
    medians.waits = StepWaits{.communication = median(mapped(runs, &StepWaits::communication)),
                              .slow_ranks = median(mapped(runs, &StepWaits::slow_ranks)),
                              .data = median(mapped(runs, &StepWaits::data)),
                              .ranks_known = std::ranges::all_of(runs, &StepWaits::ranks_known),
                              .slow_rank_names = common_names(runs)};
  return medians;
}

ScalingLoss::Noise noise_between(const CaseMedians& smaller, const CaseMedians& larger) {
  if (smaller.per_device.size() < 2 || larger.per_device.size() < 2) return ScalingLoss::Noise::unknown;
  const Interval ratio = ratio_interval(smaller.per_device, larger.per_device);
  return ratio.low <= 1 && ratio.high >= 1 ? ScalingLoss::Noise::within : ScalingLoss::Noise::above;
}

// `per_second`: lost efficiency per second that a step takes longer.
LossParts parts_between(const StepWaits& smaller, const StepWaits& larger, double per_second, double lost) {
  const auto lost_in = [&](double StepWaits::*wait) { return per_second * (larger.*wait - smaller.*wait); };
  LossParts parts{.communication = lost_in(&StepWaits::communication),
                  .slow_ranks = lost_in(&StepWaits::slow_ranks),
                  .data = lost_in(&StepWaits::data)};
  if (!smaller.ranks_known || !larger.ranks_known) parts.communication += std::exchange(parts.slow_ranks, 0);
  parts.computing = lost - parts.communication - parts.slow_ranks - parts.data;
  return parts;
}

ScalingLoss loss_between(const CaseMedians& fewest, const CaseMedians& smaller, const CaseMedians& larger) {
  ScalingLoss loss{.smaller = smaller.of->configuration, .larger = larger.of->configuration};
  loss.efficiency_before = fewest.step_seconds / smaller.step_seconds;
  loss.efficiency_after = fewest.step_seconds / larger.step_seconds;
  loss.noise = noise_between(smaller, larger);
  if (!smaller.waits || !larger.waits) return loss;
  loss.parts =
      parts_between(*smaller.waits, *larger.waits,
                    loss.efficiency_before * loss.efficiency_after / fewest.step_seconds, loss.lost());
  loss.slow_ranks = larger.waits->slow_rank_names;
  return loss;
}

// "19.3 in communication, 8.0 waiting for rank 13, -2.0 in computing"
std::string parts_text(const LossParts& parts, const std::string& slow_ranks) {
  std::vector<std::pair<double, std::string>> named{
      {parts.communication, "in communication"},
      {parts.slow_ranks, "waiting for " + (slow_ranks.empty() ? "slow ranks" : slow_ranks)},
      {parts.data, "waiting for data"},
      {parts.computing, "in computing"}};
  std::ranges::stable_sort(named, std::ranges::greater(), &std::pair<double, std::string>::first);
  std::string text;
  for (const auto& [share, name] : named)
    if (std::abs(share) >= kLeastShareNamed) append_part(text, fmt::format("{:.1f} {}", 100 * share, name));
  return text;
}

// Settings of communication say nothing about a device that is alone, unless two such are held against each
// other. Ranks that share a GPU belong to no curve of devices.
bool is_one_curve(const Configuration& a, const Configuration& b) {
  if (a.framework != b.framework || !differences(a, b, false).empty()) return false;
  if (a.settings.contains("share_gpu") || b.settings.contains("share_gpu")) return false;
  const bool one_is_alone = (a.devices() == 1) != (b.devices() == 1);
  static const std::set<std::string> kOfCommunication{"bucket mb", "comm", "overlap", "reduce dtype"};
  return std::ranges::all_of(setting_differences(a, b), [&](const Difference& one) {
    return one_is_alone && kOfCommunication.contains(one.what);
  });
}

}  // namespace

std::vector<ScalingLoss> scaling_losses(const std::vector<const Sample*>& cases) {
  std::vector<CaseMedians> medians;
  for (const Sample* one : cases)
    if (auto of_case = medians_of(*one)) medians.push_back(std::move(*of_case));
  const auto devices = [](const CaseMedians& one) { return one.of->configuration.devices(); };
  std::ranges::stable_sort(medians, {}, [&](const CaseMedians& one) {
    return std::pair(devices(one), one.of->configuration.nodes);
  });
  std::vector<ScalingLoss> losses;
  std::size_t smaller = 0;  // the first case with the next smaller number of devices
  for (std::size_t i = 1, same = 0; i < medians.size(); ++i) {
    if (devices(medians[i]) != devices(medians[i - 1])) smaller = std::exchange(same, i);
    if (same == 0) continue;
    losses.push_back(loss_between(medians.front(), medians[smaller], medians[i]));
  }
  std::ranges::stable_sort(losses, {}, [](const ScalingLoss& loss) {
    return std::pair(loss.noise == ScalingLoss::Noise::within, -loss.lost());
  });
  return losses;
}

std::vector<CurveSamples> group_by_curve(const std::vector<Sample>& samples) {
  std::vector<CurveSamples> groups;
  for (const Sample& sample : samples) {
    auto group = std::ranges::find_if(groups, [&](const CurveSamples& known) {
      return std::ranges::all_of(known, [&](const Sample* other) {
        return is_one_curve(other->configuration, sample.configuration);
      });
    });
    if (group == groups.end()) group = groups.insert(group, CurveSamples());
    group->push_back(&sample);
  }
  for (CurveSamples& group : groups)
    std::ranges::stable_sort(group, {}, [](const Sample* sample) {
      return std::pair(sample->configuration.devices(), sample->configuration.nodes);
    });
  return groups;
}

const Sample* one_device_sample(const CurveSamples& group, std::span<const CurveSamples> groups) {
  if (group.front()->configuration.devices() == 1) return group.front();
  for (const CurveSamples& other : groups)
    if (other.front()->configuration.devices() == 1 &&
        is_one_curve(other.front()->configuration, group.front()->configuration))
      return other.front();
  return nullptr;
}

CurveSamples behind_base(const CurveSamples& group, std::span<const CurveSamples> groups) {
  CurveSamples samples = group;
  const Sample* alone = one_device_sample(group, groups);
  if (alone && alone != group.front()) samples.insert(samples.begin(), alone);
  return samples;
}

std::vector<CurveScaling> scaling_of(const std::vector<Sample>& samples) {
  const std::vector<CurveSamples> groups = group_by_curve(samples);
  std::vector<CurveScaling> scaling;
  for (const CurveSamples& group : groups) {
    std::vector<ScalingLoss> losses = scaling_losses(behind_base(group, groups));
    if (losses.empty()) continue;
    scaling.push_back({group.back()->configuration, std::move(losses)});
    scaling.back().configuration.nodes = scaling.back().configuration.devices_per_node = 0;
  }
  return scaling;
}

std::string scaling_text(const ScalingLoss& loss) {
  const std::string text =
      fmt::format("{} to {}: efficiency {:.1f} % to {:.1f} %", loss.smaller.case_name(),
                  loss.larger.case_name(), 100 * loss.efficiency_before, 100 * loss.efficiency_after);
  if (loss.noise == ScalingLoss::Noise::within) return text + ", within noise";
  const std::string noise = loss.noise == ScalingLoss::Noise::unknown ? " (noise unknown from one run)" : "";
  if (!loss.parts || loss.lost() < kLeastShareNamed) return text + noise;
  return text + noise + "; points lost: " + parts_text(*loss.parts, loss.slow_ranks);
}

std::vector<std::string> scaling_verdict(std::span<const ScalingLoss> losses) {
  std::vector<std::string> sentences;
  for (const ScalingLoss& loss : losses)
    if (loss.noise != ScalingLoss::Noise::within && loss.lost() >= kLeastLoss &&
        sentences.size() < kMostLossesNamed)
      sentences.push_back(scaling_text(loss));
  return sentences;
}

std::string name_of(ScalingLoss::Noise noise) {
  static constexpr std::array kNoises{"above", "within", "unknown"};
  return kNoises[static_cast<std::size_t>(noise)];
}

}  // namespace plumb
