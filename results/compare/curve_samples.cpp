#include "results/compare/curve_samples.h"

#include <algorithm>
#include <set>
#include <utility>

namespace plumb {
namespace {

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

}  // namespace plumb
