// The exact distribution of Mann and Whitney's U, for tests and for how many runs it takes to show something.
#pragma once

#include <cstddef>
#include <optional>

namespace plumb {

// Up to so many values on both sides together the distribution of U is counted out, above it is taken for
// normal. 50 over 25 is below 2^53, so that every count is exact in a double.
inline constexpr std::size_t kMostExactValues = 50;

// Without ties: the smallest u for which P(U >= u) <= `tail` if both samples come from one distribution.
// Nothing if even U = first_count * second_count, all of one sample above all of the other, is likelier than
// that, or above kMostExactValues.
std::optional<std::size_t> critical_u(std::size_t first_count, std::size_t second_count, double tail);

}  // namespace plumb
