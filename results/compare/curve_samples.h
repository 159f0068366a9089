// Samples that make one scaling curve, and what it loses from one number of devices to the next.
#pragma once

#include <span>
#include <vector>

#include "results/compare/samples.h"
#include "results/compare/scaling_loss.h"

namespace plumb {

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

}  // namespace plumb
