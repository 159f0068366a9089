// Requirements for every kernel's machine code, and further ones for hot kernels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/cuda_sass/kernel_code.h"

namespace plumb::sass {

// A row of the table. Kernels not listed may not have a stack.
struct Wanted {
  std::string_view kernel;                    // short_name(), with * for any characters
  int wide_loads = 0, wide_stores = 0;        // minimum number of 16-byte accesses in a main part
  std::vector<std::string_view> narrow = {};  // narrower accesses allowed: "load 4", "store 1", …
  bool straight = false;                      // no loop: the main part is the code outside loops
  int stack_bytes = 0;                        // maximum
  int threads = 0;                            // per block; 0: no row in the table of figures
  int dynamic_shared_bytes = 0;               // per block
  int copied_bytes = 0;       // copied to shared memory at once, past the registers, per block
  int products = 0;           // minimum number of products of warpgroups, which only code for sm_90a has
  std::string_view why = {};  // reason for narrow accesses and a stack
  bool is_hot() const { return wide_loads + wide_stores > 0; }
};

// The project's table.
const std::vector<Wanted>& wanted_kernels();

bool matches(std::string_view pattern, std::string_view name);
// The first row that matches a kernel; the table's size if none does.
std::size_t row_of(const std::vector<Wanted>& table, std::string_view kernel);

// Checks the table's architectures. Returns messages naming the kernel and the finding, none if all is well.
// A row that matches no kernel of an architecture is a failure too.
inline constexpr int kArchitectures[] = {80, 90}, kWarpgroupArchitecture = 90;
std::vector<std::string> failures(const std::vector<KernelCode>& kernels, const std::vector<Wanted>& table);

}  // namespace plumb::sass
