// Units and cells of the tables on terminals.
#pragma once

#include <cstddef>
#include <string>

namespace plumb {

inline constexpr double kGiB = 1024.0 * 1024 * 1024;
inline constexpr double kGiga = 1e9;
inline constexpr double kMilliseconds = 1e3;  // in a second

// 0 if `whole` is 0.
inline double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

// At most `columns` letters; the last two are ".." if some are left out.
inline std::string shortened(std::string text, std::size_t columns) {
  if (text.size() <= columns) return text;
  text.resize(columns - 2);
  return text + "..";
}

}  // namespace plumb
