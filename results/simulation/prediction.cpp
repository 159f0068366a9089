#include "results/simulation/prediction.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/text.h"
#include "results/record/schema.h"

namespace plumb {
namespace {

// A measured case this near to its prediction tells how much its ranks vary; a slower one wants an
// explanation itself.
constexpr double kTrustedShare = 0.1;

// The options of the largest run that was measured; none of a log.
Json config_of(const ScalingBasis& basis) {
  Json config = Json::object();
  for (const MeasuredCase& one : basis.measured)
    if (one.record.config.is_object() && !one.record.config.empty()) config = one.record.config;
  return config;
}

// The exchange of the runs that were measured on several devices, else as the run alone would have it.
StepModel with_exchange(const ScalingBasis& basis) {
  if (std::ranges::any_of(basis.step.collectives, &StepCollective::sums_gradients)) return basis.step;
  const Json config = config_of(basis);
  const double bucket_mb = value_or<double>(config, "bucket_mb", kDefaults.bucket_mb);
  const std::string dtype = value_or<std::string>(config, "reduce_dtype", "same");
  BucketOptions buckets;
  buckets.bucket_bytes = static_cast<std::size_t>(std::llround(bucket_mb * (1 << 20)));
  return with_buckets(basis.step, buckets, dtype == "fp16" ? 2 : dtype == "fp32" ? 4 : 0);
}

Links with_changes(Links links, const WhatIf& what_if) {
  if (!what_if.any()) return links;
  const Layout all{std::max(2, static_cast<int>(links.hosts.size())), devices_per_host(links)};
  Link between = links.between_hosts.value_or(Link{});
  if (!links.between_hosts && missing_link(links, all).empty()) {
    const CollectiveCost cost(links, all);
    between = {cost.hop_seconds(), cost.bytes_per_second()};
  }
  if (what_if.between_bytes_per_second) between.bytes_per_second = *what_if.between_bytes_per_second;
  if (what_if.between_latency_seconds) between.latency_seconds = *what_if.between_latency_seconds;
  links.pairs.clear();
  std::erase_if(links.allreduces, [](const MeasuredAllreduce& one) { return one.hosts > 1; });
  links.between_hosts.reset();
  if (between.bytes_per_second > 0) links.between_hosts = between;
  return links;
}

// Simulates one case; `jitter`: seconds by which the slowest rank's step is longer.
PredictedCase predict_case(const ScalingBasis& basis, const Links& links, const StepModel& step,
                           Layout layout, double jitter) {
  const CollectiveCost cost(links, layout);
  const double alone = basis.step.seconds(), images = basis.images_per_step(layout);
  const auto seconds = [&](const StepCollective& one) { return cost.seconds(one.kind, one.bytes); };
  // With the step alone in another time.
  const auto simulated = [&](double own, const auto& seconds_of) {
    const double factor = alone > 0 ? own / alone : 1;
    return simulate(stretched_to(step, step.seconds() * factor), seconds_of).seconds;
  };
  const SimulatedStep likely = simulate(step, seconds);
  const double fastest = simulated(basis.fastest_seconds, [&](const StepCollective& one) {
    return seconds(one) * cost.spread(one.bytes).fastest;
  });
  const double slowest = 2 * jitter + simulated(basis.slowest_seconds, [&](const StepCollective& one) {
                           return seconds(one) * cost.spread(one.bytes).slowest;
                         });
  PredictedCase result{.layout = layout,
                       .step_seconds = likely.seconds + jitter,
                       .exposed_seconds = likely.exposed_seconds,
                       .jitter_seconds = jitter,
                       .slowest_pair = cost.slowest_pair()};
  result.bound_seconds = simulated(basis.fastest_seconds, [&](const StepCollective& one) {
    return cost.least_seconds(one.kind, one.bytes);
  });
  result.images_per_second = images / result.step_seconds;
  result.efficiency = alone / result.step_seconds;
  result.low_images_per_second = images / slowest;
  result.high_images_per_second = images / fastest;
  result.bound_images_per_second = images / result.bound_seconds;
  if (const auto* measured = find_in(basis.measured, layout, &MeasuredCase::layout))
    result.measured = {measured->images_per_second, measured->runs,
                       measured->images_per_second / result.images_per_second};
  for (std::size_t i = 0; layout.devices() > 1 && i < step.collectives.size(); ++i) {
    const StepCollective& one = step.collectives[i];
    const double time = seconds(one);
    result.collectives.push_back({one.name, std::llround(one.bytes), likely.collectives[i],
                                  time > 0 ? one.bytes * bus_factor(one.kind, layout.devices()) / time : 0});
  }
  return result;
}

// Cost of the ranks' differences.
struct Jitter {
  double seconds = 0;  // at `devices`
  int devices = 1;

  double of(int n) const {
    return n < 2 || devices < 2 ? 0 : seconds * expected_maximum(n) / expected_maximum(devices);
  }
};

// By the largest case on one host that was measured and is as predicted, if there is one.
Jitter measured_jitter(const ScalingBasis& basis, const std::vector<PredictedCase>& predicted) {
  Jitter jitter;
  for (const PredictedCase& one : predicted) {
    if (one.layout.nodes > 1 || one.layout.devices() < 2) continue;
    if (!one.measured || std::abs(one.measured->ratio - 1) > kTrustedShare) continue;
    const double step = basis.images_per_step(one.layout) / one.measured->images_per_second;
    jitter = {std::max(0.0, step - (one.step_seconds - one.jitter_seconds)), one.layout.devices()};
  }
  return jitter;
}

std::vector<Layout> with_measured(std::vector<Layout> cases, const ScalingBasis& basis) {
  int most = 0, least = cases.empty() ? 0 : cases.front().devices();
  for (const Layout& one : cases)
    most = std::max(most, one.devices()), least = std::min(least, one.devices());
  for (const MeasuredCase& one : basis.measured)
    if (one.layout.devices() <= most && one.layout.devices() >= least) cases.push_back(one.layout);
  std::ranges::sort(cases, {}, [](const Layout& one) { return std::pair(one.devices(), one.nodes); });
  cases.erase(std::unique(cases.begin(), cases.end()), cases.end());
  return cases;
}

}  // namespace

int devices_per_host(const Links& links) {
  int most = 1;
  for (const LinkHost& host : links.hosts) most = std::max(most, host.devices);
  return most;
}

int most_devices(const ScalingBasis& basis, const Links& links) {
  int most = static_cast<int>(links.hosts.size()) * devices_per_host(links);
  for (const MeasuredCase& one : basis.measured) most = std::max(most, one.layout.devices());
  return most;
}

std::vector<Layout> cases_up_to(int to, int devices_per_host) {
  std::vector<Layout> cases;
  for (int devices = 1; devices < devices_per_host && devices <= to; devices *= 2)
    cases.push_back({1, devices});
  for (int nodes = 1; nodes <= to / devices_per_host; nodes *= 2) cases.push_back({nodes, devices_per_host});
  if (to >= devices_per_host)
    cases.push_back({to / devices_per_host, devices_per_host});
  else
    cases.push_back({1, to});
  cases.erase(std::unique(cases.begin(), cases.end()), cases.end());
  return cases;
}

ScalingPrediction predict_scaling(const ScalingBasis& basis, const Links& links, const WhatIf& what_if,
                                  const std::vector<Layout>& cases) {
  ScalingPrediction result{
      .step = with_exchange(basis), .what_if = what_if, .links = with_changes(links, what_if)};
  const auto predict = [&](Layout layout, double jitter) {
    const StepModel& step = layout.devices() == 1 ? basis.step : result.step;  // alone, nothing is cast
    PredictedCase one = predict_case(basis, result.links, step, layout, jitter);
    one.beyond_links = layout.devices_per_node > devices_per_host(links) ||
                       static_cast<std::size_t>(layout.nodes) > links.hosts.size();
    return one;
  };
  std::map<std::string, std::string> left_out;  // cases by the link that is missing
  for (const Layout& layout : with_measured(cases, basis)) {
    if (const std::string missing = missing_link(result.links, layout); !missing.empty()) {
      append_part(left_out[missing], layout.name());
      continue;
    }
    result.cases.push_back(predict(layout, basis.deviation_seconds * expected_maximum(layout.devices())));
  }
  for (const auto& [missing, names] : left_out)
    result.notes.push_back(fmt::format("left out, as links.json has no {}: {}", missing, names));
  const Jitter jitter =
      measured_jitter(basis, what_if.any() ? predict_scaling(basis, links, {}, cases).cases : result.cases);
  for (PredictedCase& one : result.cases)
    if (jitter.devices >= 2 && one.layout.devices() > jitter.devices)
      one = predict(one.layout, jitter.of(one.layout.devices()));
  return result;
}

}  // namespace plumb
