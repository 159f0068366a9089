#include "launch/verdict/acceptance.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "results/compare/gate.h"
#include "results/simulation/prediction.h"
#include "results/simulation/scaling_verdicts.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr double kFactSeconds = 5;
constexpr double kScalingShare = 0.6;  // of the budget
constexpr int kMostRepetitions = 7;
constexpr double kScalingLimit = 0.1, kAgainstLimit = 0.03;
constexpr double kSettledSpread = 0.03;
constexpr int kSettledRuns = 3;

double seconds_of_a_run(const AcceptPlan& plan) {
  return plan.run_seconds() + plan.start_seconds;
}
double device_seconds(const AcceptPlan& plan) {
  const double inside_seconds = plan.devices_per_host > 1 ? plan.start_seconds : 0;
  return (plan.devices_per_host + 1) * seconds_of_a_run(plan) + inside_seconds;
}
double link_seconds(const AcceptPlan& plan) {
  return kFactSeconds + plan.hosts;
}
double scaling_seconds(const AcceptPlan& plan) {
  return plan.repetitions() * static_cast<double>(plan.cases().size()) * seconds_of_a_run(plan);
}

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

double AcceptPlan::run_seconds() const {
  return std::clamp(budget_seconds / 60, 1.0, 20.0);
}

std::vector<Layout> AcceptPlan::cases() const {
  std::vector<Layout> found;
  for (const Layout& one : cases_up_to(hosts * devices_per_host, devices_per_host))
    if (one.nodes > 1 || one.devices_per_node == 1 || one.devices_per_node == devices_per_host)
      found.push_back(one);
  return found;
}

int AcceptPlan::repetitions() const {
  const double round = static_cast<double>(cases().size()) * seconds_of_a_run(*this);
  return std::clamp(static_cast<int>(kScalingShare * budget_seconds / round), 1, kMostRepetitions);
}

double AcceptPlan::seconds() const {
  return kFactSeconds + device_seconds(*this) + link_seconds(*this) + scaling_seconds(*this);
}

SweepPlan scaling_plan(const AcceptPlan& plan, SweepGroup step, SweepLauncher launcher, bool on_gpus) {
  constexpr double kPatienceSeconds = 600;  // on top of the budget, for a run that hangs
  for (const auto& [option, value] : {std::pair("--iters", "12"), std::pair("--warmup", "4")})
    if (std::ranges::count(step.options, option) == 0)
      step.options.insert(step.options.end(), {option, value});
  step.options.insert(step.options.end(), {"--device", on_gpus ? "cuda" : "cpu", "--seconds",
                                           fmt::format("{}", plan.run_seconds()), "--profile", "--quiet"});
  SweepPlan sweep{.repetitions = plan.repetitions(),
                  .retries = 0,
                  .timeout_seconds = plan.budget_seconds + kPatienceSeconds,
                  .launcher = std::move(launcher),
                  .groups = {std::move(step)}};
  for (int repetition = 1; repetition <= sweep.repetitions; ++repetition)
    for (const Layout& one : plan.cases())
      sweep.runs.push_back({.name = fmt::format("step_{}_{}", one.name(), repetition),
                            .nodes = one.nodes,
                            .devices_per_node = one.devices_per_node,
                            .repetition = repetition});
  return sweep;
}

std::string plan_text(const AcceptPlan& plan) {
  std::string names;
  for (const Layout& layout : plan.cases()) append_part(names, layout.name());
  return fmt::format(
      "{}, {} each\nfacts    {:>5.0f} s\ndevices  {:>5.0f} s  each alone, {}\n"
      "links    {:>5.0f} s  all pairs\nscaling  {:>5.0f} s  {}{} times {}\nabout {:.1f} min in all\n",
      counted(plan.hosts, "host"), counted(plan.devices_per_host, "device"), kFactSeconds,
      device_seconds(plan),
      plan.devices_per_host > 1 ? "all at once, then an allreduce within each host" : "then all at once",
      link_seconds(plan), scaling_seconds(plan), plan.repetitions() > 3 ? "at most " : "", plan.repetitions(),
      names, plan.seconds() / 60);
}

bool is_settled(const std::filesystem::path& runs, const SweepRun& next) {
  if (next.repetition <= kSettledRuns) return false;
  try {
    for (const Sample& sample : load_samples({runs.string()}).samples) {
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
    const GateReport report =
        gate(load_samples({earlier.string()}).samples, load_samples({runs.string()}).samples,
             {.max_regression = kAgainstLimit, .allow_missing = true});
    for (const GateCase& judged : report.cases)
      verdict.add(against_check(judged, "runs of " + earlier.parent_path().parent_path().string(), is_busy));
  } catch (const Error& error) {
    verdict.add({.check = "against", .outcome = Outcome::unknown, .remark = error.what()});
  }
}

void add_scaling(Verdict& verdict, const ScalingJudgement& judgement) {
  try {
    JudgedScaling scaling{.basis = load_scaling_basis({judgement.runs.string()})};
    if (judgement.links)
      scaling = judge_scaling(std::move(scaling.basis), *judgement.links, judgement.expected_link);
    for (const MeasuredCase& measured : scaling.basis.measured) {
      if (measured.layout.devices() < 2) continue;
      Check check =
          scaling_check(measured, find_in(scaling.prediction.cases, measured.layout, &PredictedCase::layout));
      if (const std::string remark = remark_on(scaling.verdicts, measured.layout.name()); !remark.empty())
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
