// An instruction that no device runs, for Programs read from a file or built for simulation.
#pragma once

#include "kernels/instructions/operand.h"

namespace plumb {

struct AnyOperand {
  BufferId buffer;
  Access kind;
  constexpr Access access() const { return kind; }
};

struct Recorded {
  static constexpr std::string_view kName = "recorded";
  std::vector<AnyOperand> uses = {};
  static void operands(auto& self, auto&& each) { each("uses", self.uses); }
};

}  // namespace plumb
