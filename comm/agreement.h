// Which rank disagrees with the others, and in what.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace plumb {

struct OddRank {
  std::size_t rank = 0;
  std::string difference;  // what it has: "bs=16 where the others have bs=8"
};

// The first rank whose text differs from the most common one (of equally common ones, that of the lowest
// rank); nothing if all texts are equal. `texts`: one per rank, lines of key=value.
std::optional<OddRank> find_odd_rank(const std::vector<std::string>& texts);

// The first difference between two texts of key=value lines, from the odd one's point of view.
std::string first_difference(const std::string& odd, const std::string& others);

// The whole sentence about a rank on `host`. `what`: as for Job::require_same.
std::string disagreement(const std::string& what, const OddRank& odd, const std::string& host);

}  // namespace plumb
