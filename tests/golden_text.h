// Text that a test expects whole: a file of tests/data, which PLUMB_UPDATE=1 in the environment rewrites.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace plumb {

inline void expect_golden(const std::string& file, const std::string& text) {
  const std::string path = std::string(PLUMB_TEST_DATA) + "/" + file;
  const char* update = std::getenv("PLUMB_UPDATE");
  if (update && std::string(update) == "1") std::ofstream(path) << text;
  std::ifstream in(path);
  const std::string golden{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(text, golden) << file << ": where this is meant, run the test again with PLUMB_UPDATE=1";
}

}  // namespace plumb
