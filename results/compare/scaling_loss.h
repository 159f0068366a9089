// How much efficiency more devices cost, and where it goes: communication, slow ranks, data, computing; and
// which samples make one scaling curve.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/compare/samples.h"

namespace plumb {

// Every verdict on scaling counts a loss of efficiency, against one device or against a prediction, from here
// on.
inline constexpr double kLeastLoss = 0.1;

// Parts of lost efficiency; negative where time was won back.
struct LossParts {
  // Waits for collectives that nothing hid, as long as the rank waited that waits least.
  double communication = 0;
  // What the other ranks waited beyond that, where some ranks stand apart as slow (slow_ranks.h).
  double slow_ranks = 0;
  double data = 0;       // waits for a batch, rank 0; in slow_ranks where the others wait for rank 0
  double computing = 0;  // the rest
  static void fields(auto& self, auto&& each) {
    each("communication", self.communication), each("slow_ranks", self.slow_ranks);
    each("data", self.data), each("computing", self.computing);
  }
};

// From one number of devices to the next larger one.
struct ScalingLoss {
  enum class Noise {
    above,    // the loss is larger than the runs' spread explains
    within,   // the 95 % interval of the ratio (ratio_interval) covers 1
    unknown,  // a side has one run
  };

  Configuration smaller, larger;
  // Median throughput per device over that of the fewest devices.
  double efficiency_before = 1, efficiency_after = 1;
  Noise noise = Noise::unknown;
  std::optional<LossParts> parts;  // their sum is lost(); nothing without run folders on either side
  std::string slow_ranks;          // "rank 13 on node2"; empty: none, or another one in each run

  double lost() const { return efficiency_before - efficiency_after; }
  static void fields(auto& self, auto&& each);
};

// `cases`: of configurations that differ in their devices only, in any order. A case is set against the one
// with the next smaller number of devices, of several the one with the fewest nodes. With T as the seconds of
// a step (images of a step / median throughput) a part that takes c seconds loses
// efficiency_before * efficiency_after / T(fewest) * (c(larger) - c(smaller)), which adds up to lost() as
// efficiency = T(fewest) / T. A part's seconds are the median over the case's runs, computing is T without
// them. The largest loss first, losses within noise behind the others. Figures that aren't above 0 are left
// out.
std::vector<ScalingLoss> scaling_losses(const std::vector<const Sample*>& cases);

// "1n8g to 2n8g: efficiency 96.4 % to 69.1 %; points lost: 19.3 in communication, 8.0 waiting for rank 13 on
// node2". A loss within noise, and a gain, has no parts.
std::string scaling_text(const ScalingLoss& loss);

// The sentences of the losses of at least kLeastLoss that aren't within noise, of many the largest ones.
std::vector<std::string> scaling_verdict(std::span<const ScalingLoss> losses);

std::string name_of(ScalingLoss::Noise noise);  // "above", …

// The samples that differ by nothing but the number of devices, by devices, then nodes.
using CurveSamples = std::vector<const Sample*>;
std::vector<CurveSamples> group_by_curve(const std::vector<Sample>& samples);

// The base of a group's speedups: its sample on one device, or that of another group which differs in
// communication only; null without either.
const Sample* one_device_sample(const CurveSamples& group, std::span<const CurveSamples> groups);

// The group behind its base, if that is in another group.
CurveSamples behind_base(const CurveSamples& group, std::span<const CurveSamples> groups);

// What a group on several numbers of devices loses.
struct CurveScaling {
  Configuration configuration;  // nodes and devices_per_node are 0
  std::vector<ScalingLoss> losses;
};
// One for each of those groups among a set.
std::vector<CurveScaling> scaling_of(const std::vector<Sample>& samples);

void ScalingLoss::fields(auto& self, auto&& each) {
  each("from", self.smaller.case_name()), each("to", self.larger.case_name());
  each("efficiency_from", self.efficiency_before), each("efficiency_to", self.efficiency_after);
  each("lost", self.lost()), each("noise", name_of(self.noise), Field{"above, within or unknown"});
  each("parts", self.parts, Field{.null_if_nothing = true}), each("slow_ranks", self.slow_ranks);
  each("text", scaling_text(self));
}

}  // namespace plumb
