// Texts that are compared whatever their case.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>

namespace plumb {

// ASCII only: names of models, precisions, frameworks.
inline std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

}  // namespace plumb
