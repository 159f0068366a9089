// Reads the basis of a prediction from run folders.
#pragma once

#include <string>
#include <vector>

#include "results/compare/curve_samples.h"
#include "results/record/links.h"
#include "results/simulation/prediction.h"

namespace plumb {

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

// Throws Error(bad_data) if runs took place on hosts that `links` don't have. `file`: links.json;
// `may_force`: there is an option --force.
void check_hosts(const ScalingBasis& basis, const Links& links, const std::string& file, bool may_force);

}  // namespace plumb
