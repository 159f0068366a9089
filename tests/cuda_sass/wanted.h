// What every kernel's machine code must be like, and what more is wanted of those that training spends its
// time in.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cuda_sass/kernel_code.h"

namespace plumb::sass {

// A row of the table. No kernel but those named here may have a stack.
struct Wanted {
  std::string_view kernel;                    // short_name(), with * for any characters
  int wide_loads = 0, wide_stores = 0;        // of 16 bytes in a main part, at least
  std::vector<std::string_view> narrow = {};  // which narrower ones may be there: "load 4", "store 1", …
  bool straight = false;         // a thread has no loop: the main part is what is outside of loops
  int stack_bytes = 0;           // at most
  int threads = 0;               // of a block; 0: no row in the table of figures
  int dynamic_shared_bytes = 0;  // of a block
  std::string_view why = {};     // of narrow accesses and of a stack
  bool is_hot() const { return wide_loads + wide_stores > 0; }
};

// The project's table.
const std::vector<Wanted>& wanted_kernels();

bool matches(std::string_view pattern, std::string_view name);

// Of the architectures that the table is about; sentences that name kernel and what was found, none if all is
// well. A row that no kernel of an architecture matches counts as well.
inline constexpr int kArchitectures[] = {80, 90};
std::vector<std::string> failures(const std::vector<KernelCode>& kernels, const std::vector<Wanted>& table);

}  // namespace plumb::sass
