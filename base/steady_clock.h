// Seconds on a clock that does not jump.
#pragma once

#include <chrono>

namespace plumb {

inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace plumb
