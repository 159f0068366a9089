// Number of threads of oneDNN and our own loops in this process. Two implementations: OpenMP and serial.
#pragma once

#include <cstddef>

namespace plumb::cpu {

// Below this many elements, starting threads costs more than the loop.
inline constexpr std::ptrdiff_t kWorthThreads = 16384;

void use_threads(int threads);
int threads_in_use();

}  // namespace plumb::cpu
