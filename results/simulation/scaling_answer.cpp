#include "results/simulation/scaling_answer.h"

#include <algorithm>

#include "base/paths.h"
#include "base/text.h"
#include "base/units.h"
#include "results/anomalies/flags.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

double per_device(const MeasuredCase& one) {
  return one.images_per_second / one.layout.devices();
}

// "each of 32 devices (4n8g) reaches 61 %"
std::string reach_text(Layout layout, double efficiency) {
  return fmt::format("each of {} devices ({}) reaches {}", layout.devices(), layout.name(),
                     whole_percent(efficiency));
}

// The first flag of this kind of a case's run; empty if it has none.
std::string flag_text(const MeasuredCase& measured, const char* kind) {
  if (measured.record.step_seconds.empty()) return "";  // of a log
  const std::vector<Note> flags = run_flags(measured.record);
  const Note* flag = find_note(flags, kind);
  return flag ? flag->text : "";
}

// "; the slowest link, between n1 and n3, carries 0.012 GB/s, the median one 0.117 GB/s"; empty where a
// single pair of hosts has nothing beside it.
std::string slowest_link_text(const Links& links, const PredictedCase& predicted) {
  std::vector<double> speeds;
  double slowest = 0;
  for (const HostPair& pair : links.pairs) {
    speeds.push_back(pair.link.bytes_per_second);
    const std::string first = printable(pair.first), second = printable(pair.second);
    if (predicted.slowest_pair == first + " and " + second ||
        predicted.slowest_pair == second + " and " + first)
      slowest = pair.link.bytes_per_second;
  }
  if (speeds.size() < 2 || !(slowest > 0)) return "";
  return fmt::format("; the slowest link, between {}, carries {:.3g} GB/s, the median one {:.3g} GB/s",
                     predicted.slowest_pair, slowest / kGiga, median(speeds) / kGiga);
}

// The largest part of what a case lost against its prediction, as a clause.
std::string cause_text(const JudgedScaling& judged, const PredictedCase& predicted,
                       const MeasuredCase& measured) {
  const LostTime lost = lost_time(judged.basis, predicted, measured).front();
  const std::string slow_rank = flag_text(measured, "slow_rank");
  const std::string share = whole_percent(lost.seconds / measured_step(judged.basis, measured));
  const auto followed_by = [](std::string text, const std::string& clause) {
    return clause.empty() ? text : text + "; " + clause;
  };
  const std::string lost_text = fmt::format("{} of a step is lost {}", share, lost.name);
  switch (lost.part) {
    case LostTime::Part::slow_ranks:
      return slow_rank.empty() ? lost_text : slow_rank;
    case LostTime::Part::data:
      return lost_text;
    case LostTime::Part::communication: {
      std::string text = lost_text + " that the links don't explain";
      const std::optional<BusShare> bus = bus_share(judged.prediction, measured);
      if (bus && bus->reached < kLeastBusShare * bus->expected)
        text += fmt::format(", as its buckets reach {:.2f} of the links' bandwidth",
                            bus->reached / bus->expected);
      return followed_by(text + slowest_link_text(judged.prediction.links, predicted), slow_rank);
    }
    case LostTime::Part::computing:
      for (const char* kind : {"throttling", "slow_rank", "outliers"})
        if (const std::string flag = flag_text(measured, kind); !flag.empty())
          return followed_by(lost_text, flag);
      return lost_text;
    case LostTime::Part::unknown:
      break;
  }
  return "its log doesn't tell why; name its run folder";
}

// What costs most by the prediction itself.
std::string limit_text(const JudgedScaling& judged, const PredictedCase& predicted,
                       const MeasuredCase& measured) {
  const double exposed = predicted.exposed_seconds, jitter = predicted.jitter_seconds;
  if (exposed < jitter) {
    const std::string slow_rank = flag_text(measured, "slow_rank");
    return slow_rank.empty() ? fmt::format("; ranks wait {} a step for the slowest of them, as steps vary",
                                           duration_text(jitter))
                             : "; " + slow_rank;
  }
  const std::string link = slowest_link_text(judged.prediction.links, predicted);
  return link.empty() ? fmt::format("; {} of {} a step is exposed communication", duration_text(exposed),
                                    duration_text(predicted.step_seconds))
                      : link;
}

struct JudgedCase {
  const PredictedCase* predicted = nullptr;
  const MeasuredCase* measured = nullptr;

  double ratio() const { return measured->images_per_second / predicted->images_per_second; }
  double efficiency() const { return ratio() * predicted->efficiency; }
};

// Those on several devices, by devices.
std::vector<JudgedCase> judged_cases(const JudgedScaling& judged) {
  std::vector<JudgedCase> cases;
  for (const MeasuredCase& measured : judged.basis.measured) {
    const auto predicted =
        std::ranges::find(judged.prediction.cases, measured.layout, &PredictedCase::layout);
    if (measured.layout.devices() > 1 && predicted != judged.prediction.cases.end())
      cases.push_back({&*predicted, &measured});
  }
  return cases;
}

Note predicted_answer(const std::string& subject, const JudgedScaling& judged,
                      const std::vector<JudgedCase>& cases) {
  if (const Note* rejected = find_note(judged.verdicts, "REJECT"))
    return {"not_judged",
            fmt::format("{} can't be judged: {} with {}", subject, rejected->subject, rejected->text)};
  const JudgedCase& worst = *std::ranges::min_element(cases, {}, &JudgedCase::ratio);
  if (worst.ratio() < 1 - kLeastLoss)
    return {"held_back",
            fmt::format("{} doesn't scale as it should: {} of a device alone where its links allow {}; {}",
                        subject, reach_text(worst.measured->layout, worst.efficiency()),
                        whole_percent(worst.predicted->efficiency),
                        cause_text(judged, *worst.predicted, *worst.measured))};
  const JudgedCase& largest = cases.back();
  const std::string reach = reach_text(largest.measured->layout, largest.efficiency());
  const std::string predicted = whole_percent(largest.predicted->efficiency);
  if (largest.predicted->efficiency >= 1 - kLeastLoss)
    return {"as_it_should", fmt::format("{} scales as it should: {} of a device alone ({} predicted)",
                                        subject, reach, predicted)};
  const bool by_links = largest.predicted->exposed_seconds >= largest.predicted->jitter_seconds;
  return {"held_back", fmt::format("{} is held back by {}: {} of a device alone ({} predicted){}", subject,
                                   by_links ? "its links" : "ranks that wait for each other", reach,
                                   predicted, limit_text(judged, *largest.predicted, *largest.measured))};
}

Note unpredicted_answer(const std::string& subject, const std::vector<MeasuredCase>& measured,
                        std::span<const ScalingLoss> losses, const std::string& missing) {
  const MeasuredCase &fewest = measured.front(), &most = measured.back();
  const double efficiency = per_device(most) / per_device(fewest);
  const std::string reach = fmt::format(
      "{} of {}", reach_text(most.layout, efficiency),
      fewest.layout.devices() == 1 ? "a device alone" : "a device's speed on " + fewest.layout.name());
  if (efficiency > 1 - kLeastLoss)
    return {"as_it_should", fmt::format("{} scales as it should: {}", subject, reach)};
  if (const std::string slow = flag_text(most, "slow_rank"); !slow.empty())
    return {"held_back", fmt::format("{} doesn't scale as it should: {}; {}", subject, reach, slow)};
  const auto loses = [](const ScalingLoss& loss) {
    return loss.noise != ScalingLoss::Noise::within && loss.lost() > 0;
  };
  const auto largest = std::ranges::find_if(losses, loses);
  if (largest == losses.end())
    return {"not_judged", fmt::format("{} can't be judged: {}, within the spread of its runs; repeat them",
                                      subject, reach)};
  const std::string unknown = missing.empty() ? "" : "; what its links allow is not known without " + missing;
  return {"not_judged",
          fmt::format("{} loses efficiency: {}, {}{}", subject, reach, scaling_text(*largest), unknown)};
}

}  // namespace

std::optional<Note> scaling_answer(const std::string& subject, const std::vector<MeasuredCase>& measured,
                                   std::span<const ScalingLoss> losses, const JudgedScaling* judged,
                                   const std::string& missing) {
  if (measured.size() < 2 || measured.back().layout.devices() < 2 || !(per_device(measured.front()) > 0))
    return {};
  std::vector<JudgedCase> cases;
  if (judged) cases = judged_cases(*judged);
  Note answer = cases.empty() ? unpredicted_answer(subject, measured, losses, missing)
                              : predicted_answer(subject, *judged, cases);
  answer.text += ".";
  return answer;
}

}  // namespace plumb
