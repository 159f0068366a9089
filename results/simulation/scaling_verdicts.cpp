#include "results/simulation/scaling_verdicts.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "results/anomalies/flags.h"
#include "results/scaling/slow_ranks.h"

namespace plumb {
namespace {

// Faster than the bound: the clock or links.json is wrong. Links that are limited by token buckets, as
// clouds' are, let bursts of 3 to 5 % through.
constexpr double kRejectAbove = 0.02, kRejectAboveLinks = 0.05;
constexpr double kLeastBusShare = 0.8;    // of the bus bandwidth that bench_allreduce reached
constexpr double kLeastFall = 0.01;       // of step time: a smaller one is noise
constexpr double kLeastPartNamed = 0.05;  // of the time by which a step is longer
constexpr const char* kExposed = "in exposed communication";

// A measured case and what was predicted for it.
struct JudgedCase {
  const PredictedCase* predicted = nullptr;
  const MeasuredCase* measured = nullptr;

  int devices() const { return measured->layout.devices(); }
  double ratio() const { return measured->images_per_second / predicted->images_per_second; }
  double efficiency() const { return ratio() * predicted->efficiency; }
};

// By devices.
std::vector<JudgedCase> judged_cases(const JudgedScaling& scaling) {
  std::vector<JudgedCase> cases;
  for (const MeasuredCase& measured : scaling.basis.measured)
    if (const auto* predicted = find_in(scaling.prediction.cases, measured.layout, &PredictedCase::layout))
      cases.push_back({predicted, &measured});
  return cases;
}

// Seconds of a step: its images over the measured throughput.
double measured_step(const ScalingBasis& basis, const MeasuredCase& measured) {
  return basis.images_per_step(measured.layout) / measured.images_per_second;
}

// Where a measured step takes longer than the predicted one, seconds per step, the largest part first; below
// 0: won back.
std::vector<std::pair<double, std::string>> lost_time(const ScalingBasis& basis, const JudgedCase& of) {
  const RunRecord& record = of.measured->record;
  const double step = measured_step(basis, *of.measured), longer = step - of.predicted->step_seconds;
  const std::optional<StepWaits> waits =
      record.step_seconds.empty() ? std::nullopt : step_waits(record, step);  // empty: of a log
  if (!waits) return {{longer, "in parts that its log does not show; pass its run folder"}};
  const double jitter = of.predicted->jitter_seconds;
  const bool together = waits->slow_ranks <= 0;
  std::vector<std::pair<double, std::string>> parts{
      {waits->communication - of.predicted->exposed_seconds - (together ? jitter : 0), kExposed},
      {waits->data - basis.data_wait_seconds, "waiting for data"}};
  if (!together)
    parts.emplace_back(
        waits->slow_ranks - jitter,
        "waiting for " + (waits->slow_rank_names.empty() ? "slow ranks" : waits->slow_rank_names));
  double rest = longer;
  for (const auto& [seconds, name] : parts) rest -= seconds;
  parts.emplace_back(rest, "in computing and gaps");
  std::ranges::stable_sort(parts, std::greater(), &std::pair<double, std::string>::first);
  return parts;
}

std::string explanation_of(const ScalingBasis& basis, const JudgedCase& of) {
  const double longer = measured_step(basis, *of.measured) - of.predicted->step_seconds;
  std::string text = fmt::format("{:.5g} images/s is {} % below the predicted {:.5g}: a step takes {} longer",
                                 of.measured->images_per_second, percent_text(1 - of.ratio()),
                                 of.predicted->images_per_second, duration_text(longer));
  const auto parts = lost_time(basis, of);
  for (const auto& [seconds, name] : parts)
    if (std::abs(seconds) > kLeastPartNamed * longer)
      text += fmt::format(", {} {}", duration_text(seconds), name);
  if (parts.front().second == kExposed && !of.predicted->slowest_pair.empty())
    text += "; the slowest link is between " + of.predicted->slowest_pair;
  return text;
}

// Bytes over the time of the fastest rank, which waited least for the others, of all gradients' buckets.
// Empty if they are as fast as predicted, or weren't timed.
std::string slow_buckets_text(const Links& links, const MeasuredCase& measured) {
  const CollectiveCost cost(links, measured.layout);
  double bytes = 0, seconds = 0, expected = 0;
  for (const CollectiveRecord& one : measured.record.collectives) {
    if (!one.kind.starts_with("allreduce") || one.bytes <= 0 || !(one.seconds.min > 0)) continue;
    const double size = static_cast<double>(one.bytes);
    bytes += size * bus_factor(one.kind, measured.layout.devices());
    seconds += one.seconds.min;
    expected += cost.seconds(one.kind, size);
  }
  if (!(seconds > 0) || !(expected > 0) || expected / seconds >= kLeastBusShare) return "";
  return fmt::format(
      "its buckets reached {:.3g} GB/s of bus bandwidth, {:.2f} of the {:.3g} GB/s that links.json gives for "
      "these sizes; if bench_allreduce is slower now, too, something else uses the links",
      bytes / seconds / kGiga, expected / seconds, bytes / expected / kGiga);
}

void judge(const JudgedCase& of, JudgedScaling& scaling) {
  const PredictedCase& predicted = *of.predicted;
  const double speed = of.measured->images_per_second, bound = predicted.bound_images_per_second;
  const std::string name = of.measured->layout.name();
  if (speed > (1 + kRejectAboveLinks) * bound)
    scaling.verdicts.push_back(
        {"REJECT",
         fmt::format("{:.5g} images/s is {} % above the {:.5g} that these links allow; a device alone "
                     "computes for {}, its buckets cannot be sent before {}: the timing is wrong, or "
                     "links.json or the profile is of something else",
                     speed, percent_text(speed / bound - 1), bound,
                     duration_text(scaling.basis.fastest_seconds), duration_text(predicted.bound_seconds)),
         name});
  if (speed >= (1 - kLeastLoss) * predicted.images_per_second)
    return;  // slow buckets may hide behind computing
  scaling.verdicts.push_back({"EXPLAIN", explanation_of(scaling.basis, of), name});
  if (const std::string slow = slow_buckets_text(scaling.prediction.links, *of.measured); !slow.empty())
    scaling.verdicts.push_back({"EXPLAIN", slow, name});
}

// A device alone has no links; its bound is the roofline.
void judge_alone(const MeasuredCase& measured, JudgedScaling& scaling) {
  const double step = measured_step(scaling.basis, measured), roofline = scaling.basis.step.roofline_seconds;
  if (roofline > (1 + kRejectAbove) * step)
    scaling.verdicts.push_back(
        {"REJECT",
         fmt::format(
             "a step of {} is shorter than its roofline, {}, at the device's peaks; the timing is wrong",
             duration_text(step), duration_text(roofline)),
         measured.layout.name()});
}

void compare_steps(const MeasuredCase& fewer, const MeasuredCase& more, JudgedScaling& scaling) {
  const double before = measured_step(scaling.basis, fewer), after = measured_step(scaling.basis, more);
  if (fewer.layout.devices() >= more.layout.devices() || after >= (1 - kLeastFall) * before) return;
  scaling.verdicts.push_back(
      {"FLAG",
       fmt::format("a step takes {}, {} % less than the {} of {}, though more devices cannot shorten it; the "
                   "smaller case was held back, or one of them was timed wrongly",
                   duration_text(after), percent_text(1 - after / before), duration_text(before),
                   fewer.layout.name()),
       more.layout.name()});
}

// Slow links excuse no slow step: what links of `expected` bytes/s would allow, where that is more.
void judge_links(double expected, JudgedScaling& scaling) {
  const ScalingPrediction by_expected =
      predict_scaling(scaling.basis, scaling.prediction.links, {.between_bytes_per_second = expected},
                      mapped(scaling.prediction.cases, &PredictedCase::layout));
  for (const JudgedCase& of : judged_cases(scaling)) {
    const auto* better = find_in(by_expected.cases, of.measured->layout, &PredictedCase::layout);
    if (better && (1 - kLeastLoss) * better->images_per_second > of.predicted->images_per_second)
      scaling.verdicts.push_back(
          {"LINKS",
           fmt::format("links of {:.3g} GB/s, as expected, would allow {:.5g} images/s", expected / kGiga,
                       better->images_per_second),
           of.measured->layout.name()});
  }
}

// "each of 32 devices (4n8g) reaches 61 %"
std::string reach_text(Layout layout, double efficiency) {
  return fmt::format("each of {} devices ({}) reaches {}", layout.devices(), layout.name(),
                     whole_percent(efficiency));
}

Note predicted_answer(const std::string& subject, const std::vector<Note>& verdicts,
                      const std::vector<JudgedCase>& cases) {
  const JudgedCase& worst = *std::ranges::min_element(cases, {}, &JudgedCase::ratio);
  const auto explained = std::ranges::find_if(verdicts, [&](const Note& one) {
    return one.kind == "EXPLAIN" && one.subject == worst.measured->layout.name();
  });
  if (worst.ratio() < 1 - kLeastLoss && explained != verdicts.end())
    return {"held_back",
            fmt::format("{} doesn't scale as it should: {} of a device alone where its links allow {}; {}",
                        subject, reach_text(worst.measured->layout, worst.efficiency()),
                        whole_percent(worst.predicted->efficiency), explained->text)};
  if (const Note* rejected = find_in(verdicts, "REJECT", &Note::kind))
    return {"not_judged",
            fmt::format("{} cannot be judged: {} with {}", subject, rejected->subject, rejected->text)};
  const JudgedCase& largest = cases.back();
  const PredictedCase& predicted = *largest.predicted;
  const std::string reach = fmt::format("{} of a device alone ({} predicted)",
                                        reach_text(largest.measured->layout, largest.efficiency()),
                                        whole_percent(predicted.efficiency));
  if (predicted.efficiency >= 1 - kLeastLoss)
    return {"as_it_should", fmt::format("{} scales as it should: {}", subject, reach)};
  const bool by_links = predicted.exposed_seconds >= predicted.jitter_seconds;
  const auto slow_links = std::ranges::find_if(verdicts, [&](const Note& one) {
    return one.kind == "LINKS" && one.subject == largest.measured->layout.name();
  });
  return {"held_back",
          fmt::format("{} is held back by {}: {}, {} of {} a step{}{}", subject,
                      by_links ? "its links" : "ranks that wait for each other", reach,
                      duration_text(by_links ? predicted.exposed_seconds : predicted.jitter_seconds),
                      duration_text(predicted.step_seconds),
                      by_links && !predicted.slowest_pair.empty()
                          ? "; the slowest link is between " + predicted.slowest_pair
                          : "",
                      slow_links == verdicts.end() ? "" : "; " + slow_links->text)};
}

double per_device(const MeasuredCase& one) {
  return one.images_per_second / one.layout.devices();
}

Note unpredicted_answer(const std::string& subject, const std::vector<MeasuredCase>& measured,
                        std::span<const ScalingLoss> losses, const std::string& reason) {
  const MeasuredCase &fewest = measured.front(), &most = measured.back();
  const double efficiency = per_device(most) / per_device(fewest);
  const std::string reach = fmt::format(
      "{} of {}", reach_text(most.layout, efficiency),
      fewest.layout.devices() == 1 ? "a device alone" : "a device's speed on " + fewest.layout.name());
  if (efficiency > 1 - kLeastLoss)
    return {"as_it_should", fmt::format("{} scales as it should: {}", subject, reach)};
  const auto largest = std::ranges::find_if(losses, [](const ScalingLoss& loss) {
    return loss.noise != ScalingLoss::Noise::within && loss.lost() > 0;
  });
  if (largest == losses.end())
    return {"not_judged", fmt::format("{} cannot be judged: {}, within the spread of its runs; repeat them",
                                      subject, reach)};
  return {"not_judged", fmt::format("{} loses efficiency: {}; {}; what its links allow is not known{}",
                                    subject, reach, scaling_text(*largest), reason)};
}

}  // namespace

JudgedScaling judge_scaling(ScalingBasis basis, const Links& links, std::optional<double> expected_link,
                            const WhatIf& what_if, std::optional<int> to) {
  const auto cases = cases_up_to(to.value_or(most_devices(basis, links)), devices_per_host(links));
  JudgedScaling scaling{.basis = std::move(basis)};
  scaling.prediction = predict_scaling(scaling.basis, links, what_if, cases);
  if (what_if.any()) return scaling;
  const std::vector<JudgedCase> judged = judged_cases(scaling);
  const MeasuredCase* before = nullptr;
  for (const MeasuredCase& measured : scaling.basis.measured) {
    const JudgedCase* of = find_in(judged, &measured, &JudgedCase::measured);
    if (of && of->devices() == 1) judge_alone(measured, scaling);
    if (of && of->devices() > 1) judge(*of, scaling);
    if (before) compare_steps(*before, measured, scaling);
    before = &measured;
  }
  if (expected_link) judge_links(*expected_link, scaling);
  return scaling;
}

std::optional<Note> scaling_answer(const std::string& subject, const std::vector<MeasuredCase>& measured,
                                   std::span<const ScalingLoss> losses, const JudgedScaling* judged,
                                   const std::string& reason) {
  if (measured.size() < 2 || measured.back().layout.devices() < 2 || !(per_device(measured.front()) > 0))
    return {};
  std::vector<JudgedCase> cases;
  if (judged) cases = judged_cases(*judged);
  std::erase_if(cases, [](const JudgedCase& one) { return one.devices() == 1; });
  Note answer = cases.empty() ? unpredicted_answer(subject, measured, losses, reason)
                              : predicted_answer(subject, judged->verdicts, cases);
  answer.text += ".";
  return answer;
}

}  // namespace plumb
