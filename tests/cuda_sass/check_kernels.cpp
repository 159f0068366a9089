// check_kernels TASK FILE…: reads cuobjdump's output for object files (called by tests/cuda_sass/kernels.sh).
//   check  prints failures, one per line; exit code 1 if there are any, 77 if there is nothing to check
//   table  how hot kernels fill an H100 or H200, as the Markdown of docs/gpu.md
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/cuda_sass/figures.h"
#include "tests/cuda_sass/wanted.h"

namespace {

using namespace plumb::sass;

int check(const std::vector<KernelCode>& kernels) {
  const auto is_checked = [](const KernelCode& kernel) {
    return std::find(std::begin(kArchitectures), std::end(kArchitectures), kernel.architecture) !=
           std::end(kArchitectures);
  };
  if (std::none_of(kernels.begin(), kernels.end(), is_checked)) {
    std::cout << "skipped: this build has no kernels for sm_80 or sm_90\n";
    return 77;
  }
  const std::vector<std::string> found = failures(kernels, wanted_kernels());
  for (const std::string& failure : found) std::cout << failure << '\n';
  if (found.empty()) std::cout << kernels.size() << " kernels are as wanted\n";
  return found.empty() ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  std::vector<KernelCode> kernels;
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::ifstream dump(words[i]);
    if (!dump) {
      std::cerr << "check_kernels: " << words[i] << " can't be read\n";
      return 74;
    }
    std::vector<KernelCode> more = read_kernels(dump);
    kernels.insert(kernels.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  const std::string task = words.empty() ? "" : words[0];
  if (task == "check") return check(kernels);
  if (task == "table") {
    std::cout << figures_table(kernels, wanted_kernels());
    return 0;
  }
  std::cerr << "check_kernels: '" << task << "' is no task; there are check and table\n";
  return 64;
}
