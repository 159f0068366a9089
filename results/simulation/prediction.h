// Throughput that a run should have on other numbers of devices and nodes, over given links.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results/analysis/configuration.h"
#include "results/compare/scaling_loss.h"
#include "results/record/links.h"
#include "results/record/schema.h"
#include "results/simulation/collective_cost.h"
#include "results/simulation/simulator.h"
#include "results/simulation/step_model.h"

namespace plumb {

struct MeasuredCase {
  Layout layout;
  double images_per_second = 0;  // median over the runs, all devices together
  int runs = 1;
  RunRecord record;  // of the run whose throughput is nearest to it
};

// Basis of a prediction: runs of one configuration.
struct ScalingBasis {
  Configuration configuration;  // nodes and devices_per_node as of the profiled run
  std::string run;              // folder of the profiled run
  StepModel step;               // in the time of a device alone; no roofline where limits are no datasheet's
  // Seconds of a step alone: as it varies from run to run, and as its median is known.
  double fastest_seconds = 0, slowest_seconds = 0;
  double deviation_seconds = 0;        // of a rank's step from step to step
  double data_wait_seconds = 0;        // inside the step alone
  std::vector<MeasuredCase> measured;  // by devices, then nodes
  std::vector<std::string> notes;      // runs that were left out, and why

  double images_per_step(Layout layout) const {
    return layout.devices() * static_cast<double>(configuration.batch_per_device);
  }
};

// `paths`: a run folder with program.json and profile.json, beside others of the same configuration on other
// numbers of devices. The profiled run with the fewest devices gives the step: its instructions' times,
// stretched so that they take, together, its step without exposed communication. Throws Error(bad_data) that
// names the file and the remedy: no run with a profile, runs of several configurations, a profile of another
// program, class centers that are shared out.
ScalingBasis load_scaling_basis(const std::vector<std::string>& paths);
// Likewise from the samples of one curve, its base among them. Without notes.
ScalingBasis scaling_basis(const CurveSamples& curve);

// Whether a run of the curve has a profile.json.
bool has_profile(const CurveSamples& curve);
// The cases of a curve, by devices, then nodes.
std::vector<MeasuredCase> measured_cases(const CurveSamples& curve);

inline constexpr const char* kProbedLinks = "links that the runs probed";
// The links that the case on the most hosts probed. A case whose collectives went another way (--comm) is
// passed over.
std::optional<Links> probed_links(const std::vector<MeasuredCase>& measured);

// Throws Error(bad_data) if runs took place on hosts that `links` don't have. `file`: links.json.
void check_hosts(const ScalingBasis& basis, const Links& links, const std::string& file);

// Other links between hosts; empty: as measured.
struct WhatIf {
  std::optional<double> between_bytes_per_second, between_latency_seconds;

  bool any() const { return between_bytes_per_second || between_latency_seconds; }
  static void fields(auto& self, auto&& each) {
    const Field null{.null_if_nothing = true};
    each("between_bytes_per_second", self.between_bytes_per_second, null);
    each("between_latency_seconds", self.between_latency_seconds, null);
  }
};

struct PredictedCollective {
  std::string name;
  std::int64_t bytes = 0;
  SimulatedCollective time;
  double bus_bytes_per_second = 0;  // as predicted
  static void fields(auto& self, auto&& each);
};

struct MeasuredThroughput {
  double images_per_second = 0;
  int runs = 0;
  double ratio = 0;  // to the predicted one
  static void fields(auto& self, auto&& each);
};

struct PredictedCase {
  Layout layout;
  // step = the step alone + exposed communication + jitter.
  double step_seconds = 0, exposed_seconds = 0, jitter_seconds = 0;
  // No schedule is faster: the step alone at its fastest, and every byte at full bandwidth without a start.
  double bound_seconds = 0;
  double images_per_second = 0;  // all devices together
  double efficiency = 1;         // images_per_second over devices times those of a device alone
  // Low: the step alone and allreduces at the slowest that was measured, and twice the jitter. High: all of
  // them at their fastest, without jitter.
  double low_images_per_second = 0, high_images_per_second = 0;
  double bound_images_per_second = 0;
  std::optional<MeasuredThroughput> measured;
  std::vector<PredictedCollective> collectives;  // none of a device alone
  std::string slowest_pair;                      // "node1 and node3", the link that limits the ring
  bool beyond_links = false;                     // more hosts or devices than links.json has
  static void fields(auto& self, auto&& each);
};

struct ScalingPrediction {
  StepModel step;  // with the collectives that were simulated
  WhatIf what_if;
  Links links;                       // changed by what_if
  std::vector<PredictedCase> cases;  // by devices, then nodes
  std::vector<std::string> notes;    // cases that were left out, and why
};

// Devices of a host that cases have at most: the most of any host of `links`.
int devices_per_host(const Links& links);
// As many as `links` and the measured cases have.
int most_devices(const ScalingBasis& basis, const Links& links);
// 1, 2, 4, … devices of a host and all of them, then 2, 4, 8, … whole hosts and `to`.
std::vector<Layout> cases_up_to(int to, int devices_per_host);

// Cases over links that are not known are left out with a note. `cases` and those measured up to the largest
// of them, each once. Jitter is expected_maximum(n) times the deviation of a rank's step; beyond the largest
// case measured on one host whose throughput is within 10 % of its prediction, what that one lost beside
// communication, times E(n) / E(its devices).
ScalingPrediction predict_scaling(const ScalingBasis& basis, const Links& links, const WhatIf& what_if,
                                  const std::vector<Layout>& cases);

}  // namespace plumb
