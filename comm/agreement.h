// Finds a rank that disagrees with the others, and the difference.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace plumb {

struct OddRank {
  std::size_t rank = 0;
  std::string difference;  // e.g. "bs=16 where the others have bs=8"
};

// The first rank whose text (lines of key=value) differs from the most common one, in ties the lowest rank's.
std::optional<OddRank> find_odd_rank(const std::vector<std::string>& texts);

// The first difference, from the odd one's point of view; of texts without a common key their first lines.
std::string first_difference(const std::string& odd, const std::string& others);

// The full error message for a rank on `host` (empty: not known, so a build is of another commit). `what`: as
// in Job::require_same.
std::string disagreement(const std::string& what, const OddRank& odd, const std::string& host);

}  // namespace plumb
