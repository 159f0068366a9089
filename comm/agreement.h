// Finds a rank that disagrees with the others, and the difference.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace plumb {

// The first difference, from the odd one's point of view.
std::string first_difference(const std::string& odd, const std::string& others);

// The full error message for the first rank whose text (lines of key=value) differs from the most common one,
// in ties the lowest rank's; nothing if all agree. `hosts`: each rank's. `what`: as in Job::require_same.
std::optional<std::string> disagreement(const std::string& what, const std::vector<std::string>& texts,
                                        const std::vector<std::string>& hosts);

}  // namespace plumb
