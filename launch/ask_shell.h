// A command's exit code and all that it says.
#pragma once

#include <string>
#include <vector>

namespace plumb {

struct ShellAnswer {
  int code = -1;
  std::string text;  // of both outputs
};

// Runs to its end, with no input.
ShellAnswer ask_shell(const std::vector<std::string>& command);

}  // namespace plumb
