// Reads the basis of a prediction from run folders.
#pragma once

#include <string>
#include <vector>

#include "results/record/links.h"
#include "results/simulation/prediction.h"

namespace plumb {

// `paths`: a run folder with program.json and profile.json, beside others of the same configuration on other
// numbers of devices. The profiled run with the fewest devices gives the step: its instructions' times,
// stretched so that they take, together, its step without exposed communication. Throws Error(bad_data) that
// names the file and the remedy: no run with a profile, runs of several configurations, a profile of another
// program, class centres that are shared out.
ScalingBasis load_scaling_basis(const std::vector<std::string>& paths);

// Throws Error(bad_data) if runs took place on hosts that `links` don't have. `file`: links.json.
void check_hosts(const ScalingBasis& basis, const Links& links, const std::string& file);

}  // namespace plumb
