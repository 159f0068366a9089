// Software prefetch of scattered rows, which the hardware prefetcher can't predict.
#pragma once

#include <cstddef>

namespace plumb::cpu {

// Prefetch distance in rows: long enough for memory latency, short enough for the L1 cache.
inline constexpr std::ptrdiff_t kRowsAhead = 6;

inline void prefetch_row(const float* row, std::ptrdiff_t columns) {
  constexpr std::ptrdiff_t kFloatsPerCacheLine = 16;
  for (std::ptrdiff_t c = 0; c < columns; c += kFloatsPerCacheLine) __builtin_prefetch(row + c);
}

}  // namespace plumb::cpu
