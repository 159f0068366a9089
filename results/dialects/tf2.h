// Shared by the two dialects of TensorFlow 2 logs. A line for every 100 steps (--log_steps), in them "I0801
// 10:00:00.594147 1403 keras_utils.py:145] TimeHistory: 39.78 seconds, 321.77 examples/second between steps 0
// and 100", the speed that of all replicas.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "results/dialects/dialect.h"

namespace plumb {

inline constexpr std::int64_t kTf2StepsPerLine = 100;  // by the published scripts, whatever the lines say

bool is_of_tf2(std::string_view line);
// 100 for "between steps 0 and 100".
std::optional<std::int64_t> tf2_last_step(std::string_view line);

// The published scripts' slice of the lines, [from:to]. Throws Error(bad_data) for a warm-up on which they
// die.
struct Tf2Slice {
  std::int64_t from = 0, to = 0;
};
Tf2Slice tf2_slice(const Window& window);
// A clause if a line isn't of as many steps as the scripts think; else empty.
std::string tf2_caveat(const LogSeries& series, const Window& window);

}  // namespace plumb
