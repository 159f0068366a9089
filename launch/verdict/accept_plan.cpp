#include "launch/verdict/accept_plan.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "results/simulation/prediction.h"

namespace plumb {
namespace {

constexpr double kFactSeconds = 5;
constexpr double kScalingShare = 0.6;  // of the budget
constexpr int kMostRepetitions = 7;

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

}  // namespace plumb
