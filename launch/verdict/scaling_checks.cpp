#include "launch/verdict/scaling_checks.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "results/compare/gate.h"
#include "results/simulation/scaling_verdicts.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr double kScalingLimit = 0.1, kAgainstLimit = 0.03;
constexpr double kSettledSpread = 0.03;
constexpr int kSettledRuns = 3;

Check scaling_check(const MeasuredCase& measured, const PredictedCase* predicted) {
  Check check{.check = "scaling " + measured.layout.name(),
              .where = {counted(measured.layout.nodes, "host")},
              .measured = fmt::format("{:.1f} images/s", measured.images_per_second),
              .limit = kScalingLimit,
              .runs = static_cast<std::size_t>(measured.runs)};
  if (predicted == nullptr) {
    check.outcome = Outcome::unknown;
    check.remark = "what its links allow is not known";
    return check;
  }
  check.expected = fmt::format("{:.1f} images/s", predicted->images_per_second);
  check.source = "its links";
  check.outcome = measured.images_per_second >= (1 - kScalingLimit) * predicted->images_per_second
                      ? Outcome::pass
                      : Outcome::fail;
  return check;
}

// The verdict's words on this case: what holds it back, or why its figures can't be.
std::string remark_on(const std::vector<Note>& verdicts, const std::string& name) {
  std::string text;
  for (const Note& note : verdicts)
    if (note.subject == name) append_part(text, note.text, "; ");
  return text;
}

const PredictedCase* predicted_case(const ScalingPrediction& prediction, const MeasuredCase& measured) {
  const auto found = std::ranges::find_if(prediction.cases, [&](const PredictedCase& one) {
    return one.layout.name() == measured.layout.name();
  });
  return found == prediction.cases.end() ? nullptr : &*found;
}

Check against_check(const GateCase& judged, const std::string& source, bool is_busy) {
  using enum GateCase::Outcome;
  Check check{.check = "against " + judged.configuration.case_name(),
              .where = {judged.configuration.case_name()},
              .source = source,
              .limit = kAgainstLimit,
              .outcome = judged.outcome == passed                   ? Outcome::pass
                         : judged.outcome == regression && !is_busy ? Outcome::fail
                         : judged.outcome == missing                ? Outcome::skip
                                                                    : Outcome::unknown,
              .remark = judged.outcome == passed ? "" : judged.finding,
              .runs = judged.figures.size()};
  if (!judged.baseline.empty()) check.expected = fmt::format("{:.1f} images/s", median(judged.baseline));
  if (!judged.figures.empty()) check.measured = fmt::format("{:.1f} images/s", median(judged.figures));
  return check;
}

}  // namespace

bool is_settled(const std::filesystem::path& runs, const SweepRun& next) {
  if (next.repetition <= kSettledRuns) return false;
  try {
    for (const Sample& sample : load_samples(runs).samples) {
      const std::vector<double> speeds = sample.figures();
      if (sample.configuration.case_name() != next.case_name() || std::ssize(speeds) < kSettledRuns) continue;
      const auto [low, high] = std::ranges::minmax_element(speeds);
      return *high - *low < kSettledSpread * median(speeds);
    }
  } catch (const Error&) {
    // No run is done yet.
  }
  return false;
}

void add_against(Verdict& verdict, const std::filesystem::path& runs, const std::filesystem::path& earlier,
                 bool is_busy) {
  try {
    const GateReport report = gate(load_samples(earlier).samples, load_samples(runs).samples,
                                   {.max_regression = kAgainstLimit, .allow_missing = true});
    for (const GateCase& judged : report.cases)
      verdict.add(against_check(judged, "runs of " + earlier.parent_path().parent_path().string(), is_busy));
  } catch (const Error& error) {
    verdict.add({.check = "against", .outcome = Outcome::unknown, .remark = error.what()});
  }
}

void add_scaling(Verdict& verdict, const ScalingJudgement& judgement) {
  try {
    const ScalingBasis basis = load_scaling_basis({judgement.runs.string()});
    ScalingPrediction prediction;
    std::vector<Note> verdicts;
    if (judgement.links) {
      const Links& links = *judgement.links;
      const std::vector<Layout> cases = cases_up_to(most_devices(basis, links), devices_per_host(links));
      prediction = predict_scaling(basis, links, {}, cases);
      verdicts = scaling_verdicts(basis, prediction, judgement.expected_link);
    }
    for (const MeasuredCase& measured : basis.measured) {
      if (measured.layout.devices() < 2) continue;
      Check check = scaling_check(measured, predicted_case(prediction, measured));
      if (const std::string remark = remark_on(verdicts, measured.layout.name()); !remark.empty())
        append_part(check.remark, remark, "; ");
      if (check.outcome == Outcome::fail && judgement.shares_machine) {
        check.outcome = Outcome::skip;
        check.source = "its links, but hosts share one machine's CPUs";
      }
      verdict.add(std::move(check));
    }
  } catch (const Error& error) {
    verdict.add(
        {.check = "scaling", .where = judgement.hosts, .outcome = Outcome::unknown, .remark = error.what()});
  }
}

}  // namespace plumb
