// Seconds on a clock that doesn't jump.
#pragma once

#include <chrono>

namespace plumb {

inline double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace plumb
