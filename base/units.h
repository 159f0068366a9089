// Units and cells of the tables on terminals.
#pragma once

#include <cmath>

#include "base/text.h"

namespace plumb {

inline constexpr double kGiB = 1024.0 * 1024 * 1024;
inline constexpr double kGiga = 1e9;
inline constexpr double kMilliseconds = 1e3, kMicrosecondsInSecond = 1e6;  // in a second

// "7.3", "-0.4": without a sign where it rounds to 0.
inline std::string percent_text(double share) {
  const double tenths = std::round(1000 * share);
  return fmt::format("{:.1f}", tenths == 0 ? 0.0 : tenths / 10);
}

// "1 %", "0.25 %": as it was given.
inline std::string given_percent(double share) {
  return fmt::format("{:.4g} %", 100 * share);
}

// 0 if `whole` is 0.
inline double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

// "40 s", "6.2 min": about so long.
inline std::string rough_time_text(double seconds) {
  constexpr double kMostSeconds = 90, kSecondsInMinute = 60;
  return seconds < kMostSeconds ? fmt::format("{:.0f} s", seconds)
                                : fmt::format("{:.1f} min", seconds / kSecondsInMinute);
}

}  // namespace plumb
