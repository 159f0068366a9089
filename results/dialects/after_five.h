// Scripts that pass over iterations 0 to 5, a slow start, and count lines from there.
#pragma once

#include <cstdint>
#include <string>

#include "base/text.h"
#include "results/dialects/dialect.h"

namespace plumb {

inline constexpr std::int64_t kFirstCounted = 6;  // iteration of the line that is counted as the first

// See Dialect::indices_wanted.
inline std::int64_t indices_wanted_after_five(const Window& window, std::int64_t first_index) {
  return window.iterations + kFirstCounted - first_index;
}

// "lines 20 to 120 after iteration 5"
inline std::string lines_after_five(std::int64_t from, std::int64_t to) {
  return fmt::format("lines {} to {} after iteration {}", from, to, kFirstCounted - 1);
}

}  // namespace plumb
