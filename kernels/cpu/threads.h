// Threads and prefetching of our own loops.
#pragma once

#include <cstddef>

namespace plumb::cpu {

// Below this many elements, starting threads costs more than the loop.
inline constexpr std::ptrdiff_t kWorthThreads = 16384;

// Number of threads of oneDNN and our own loops in this process. Two implementations: OpenMP and serial.
void use_threads(int threads);
int threads_in_use();

// Software prefetch of scattered rows, which the hardware prefetcher can't predict. Distance in rows: long
// enough for memory latency, short enough for the L1 cache.
inline constexpr std::ptrdiff_t kRowsAhead = 6;

inline void prefetch_row(const float* row, std::ptrdiff_t columns) {
  constexpr std::ptrdiff_t kFloatsPerCacheLine = 16;
  for (std::ptrdiff_t c = 0; c < columns; c += kFloatsPerCacheLine) __builtin_prefetch(row + c);
}

}  // namespace plumb::cpu
