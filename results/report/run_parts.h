// What a report shows of one run's profile.
#pragma once

#include <string>

#include "results/record/profile.h"

namespace plumb {

// The longest first, as a report shows it. Throws Error(bad_data) that names `origin` and the key.
RunProfile run_profile(const Json& profile, const std::string& origin, std::size_t most_instructions = 500);

}  // namespace plumb
