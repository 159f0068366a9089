#include <algorithm>
#include <set>

#include "tests/cuda_sass/memory_use.h"
#include "tests/cuda_sass/wanted.h"

namespace plumb::sass {
namespace {

std::string text_of(const Access& access) {
  return (access.loads ? "load " : "store ") + std::to_string(access.bytes);
}

void expect_products(const KernelCode& kernel, const Wanted& wanted, const auto& fail) {
  const auto found = std::ranges::count_if(
      kernel.code, [](const Instruction& one) { return one.opcode.starts_with("HGMMA."); });
  if (found < wanted.products)
    fail(std::to_string(found) + " products of warpgroups, " + std::to_string(wanted.products) + " wanted");
}

void check_main_part(const KernelCode& kernel, const Wanted& wanted, const auto& fail) {
  if (kernel.code.empty()) return fail("no machine code in the dump");
  int loads = 0, stores = 0;
  std::set<std::string> narrow;
  const MemoryUse use = memory_use(kernel);
  if (use.main_is_loop == wanted.straight)
    return fail(wanted.straight ? "a loop has accesses of 128 bits, which the table says it does without"
                                : "no loop has accesses of 128 bits");
  for (const std::vector<Access>& part : use.main) {
    int loads_here = 0, stores_here = 0;
    for (const Access& access : part) {
      if (access.local)
        narrow.insert(text_of(access) + " of local memory");
      else if (access.bytes == 16)
        (access.loads ? loads_here : stores_here) += 1;
      else if (std::find(wanted.narrow.begin(), wanted.narrow.end(), text_of(access)) == wanted.narrow.end())
        narrow.insert(text_of(access));
    }
    loads = std::max(loads, loads_here);
    stores = std::max(stores, stores_here);
  }
  const auto expect = [&](int found, int least, const char* what) {
    if (found < least)
      fail(std::to_string(found) + " " + what + " of 128 bits at most in a main loop, " +
           std::to_string(least) + " wanted");
  };
  expect(loads, wanted.wide_loads, "loads");
  expect(stores, wanted.wide_stores, "stores");
  expect_products(kernel, wanted, fail);
  for (const std::string& access : narrow)
    fail("a main loop has '" + access + "' (bytes), which the table doesn't allow");
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t begin = star; begin <= name.size(); ++begin)
    if (matches(rest, name.substr(begin))) return true;
  return false;
}

std::size_t row_of(const std::vector<Wanted>& table, std::string_view kernel) {
  const auto matching = [&](const Wanted& wanted) { return matches(wanted.kernel, kernel); };
  return static_cast<std::size_t>(std::ranges::find_if(table, matching) - table.begin());
}

std::vector<std::string> failures(const std::vector<KernelCode>& kernels, const std::vector<Wanted>& table) {
  std::vector<std::string> found;
  for (int architecture : kArchitectures) {
    const std::string where = "sm_" + std::to_string(architecture) + " ";
    std::vector<bool> exists(table.size(), false);
    bool any = false;
    for (const KernelCode& kernel : kernels) {
      if (kernel.architecture != architecture) continue;
      any = true;
      const auto fail = [&](const std::string& what) { found.push_back(where + kernel.name + ": " + what); };
      int stack_bytes = 0;
      if (const std::size_t row = row_of(table, kernel.name); row < table.size()) {
        exists[row] = true;
        stack_bytes = table[row].stack_bytes;
        const bool has_code = table[row].products == 0 || architecture == kWarpgroupArchitecture;
        if (table[row].is_hot() && has_code) check_main_part(kernel, table[row], fail);
      }
      if (kernel.stack_bytes > stack_bytes)
        fail(std::to_string(kernel.stack_bytes) + " bytes of local memory per thread, " +
             std::to_string(stack_bytes) + " allowed");
    }
    for (std::size_t row = 0; any && row < table.size(); ++row)
      if (!exists[row])
        found.push_back(where + "no kernel matches the table's " + std::string(table[row].kernel));
  }
  return found;
}

}  // namespace plumb::sass
