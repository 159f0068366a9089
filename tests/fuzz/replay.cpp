// fuzz_replay TARGET PATH…: runs a fuzz target over files or folders of files, instead of libFuzzer's main,
// for compilers without it. The last name printed is the input that ended the program.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_input.h"

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> inputs_at(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> inputs;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) inputs.push_back(entry.path());
  std::sort(inputs.begin(), inputs.end());
  return inputs;
}

void replay(plumb::FuzzTarget target, const fs::path& input) {
  std::printf("%s\n", input.c_str());
  std::fflush(stdout);
  std::ifstream file(input, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  // An exact copy on the heap, so that reading past the end is detected.
  const std::vector<std::uint8_t> exact(bytes.begin(), bytes.end());
  target(exact.data(), exact.size());
}

}  // namespace

int main(int argc, char** argv) {
  const auto target = plumb::fuzz_targets().find(argc > 1 ? argv[1] : "");
  if (target == plumb::fuzz_targets().end()) {
    std::fputs("fuzz_replay: the first argument must be one of these targets:", stderr);
    for (const auto& [name, function] : plumb::fuzz_targets()) std::fprintf(stderr, " %s", name.c_str());
    std::fputs("\n", stderr);
    return 64;
  }
  std::size_t count = 0;
  for (int i = 2; i < argc; ++i)
    for (const fs::path& input : inputs_at(argv[i])) {
      replay(target->second, input);
      ++count;
    }
  std::printf("%zu inputs\n", count);
  return count > 0 ? 0 : 1;  // an empty corpus proves nothing
}
