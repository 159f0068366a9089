// Environment variables.
#pragma once

#include <cstdlib>
#include <string>

namespace plumb {

// Empty if it isn't set.
inline std::string environment_variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace plumb
