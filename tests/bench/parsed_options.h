// Options as a command line gives them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/options/options.h"

namespace plumb {

inline BenchOptions parsed_options(const std::vector<std::string>& arguments,
                                   const std::string& program = "bench_resnet50",
                                   std::span<const Model> catalogue = model_catalogue()) {
  std::vector<const char*> argv{program.c_str()};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  return parse_options(static_cast<int>(argv.size()), argv.data(), program, catalogue);
}

}  // namespace plumb
