// Which rank disagrees with the others, and in what.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace plumb {

struct OddRank {
  std::size_t rank = 0;
  std::string difference;  // "--bs=16 here, --bs=8 there": "here" is the odd rank, "there" are the rest
};

// The first rank whose text differs from the most common one (of equally common ones, that of the lowest
// rank); nothing if all texts are equal. `texts`: one per rank, lines of key=value.
std::optional<OddRank> find_odd_rank(const std::vector<std::string>& texts);

// What two different texts of key=value lines differ in, first difference only.
std::string first_difference(const std::string& here, const std::string& there);

}  // namespace plumb
