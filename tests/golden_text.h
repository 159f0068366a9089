// Text that a test expects whole: a file of tests/data, which PLUMB_UPDATE=1 in the environment rewrites.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace plumb {

inline void expect_golden(const std::string& file, const std::string& text) {
  const std::string path = std::string(PLUMB_TEST_DATA) + "/" + file;
  const char* update = std::getenv("PLUMB_UPDATE");
  if (update && std::string(update) == "1") std::ofstream(path) << text;
  std::ifstream in(path);
  const std::string golden{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(text, golden) << file << ": where this is meant, run the test again with PLUMB_UPDATE=1";
}

// Lines of several cases, of the first one in full. Of others those that the first one lacks ("+"), and the
// two leading words, kind and name, of those that have gone ("-"). A line with the same two words has
// changed.
class GoldenCases {
 public:
  void add(const std::string& title, const std::vector<std::string>& lines) {
    if (first_.empty()) {
      first_ = lines;
      return add_whole(title, lines);
    }
    text_ += "== " + title + "\n";
    const std::set<std::string> known(first_.begin(), first_.end());
    std::set<std::string> names;
    for (const std::string& line : lines) names.insert(name_in(line));
    for (const std::string& line : first_)
      if (!names.contains(name_in(line))) text_ += "- " + name_in(line) + "\n";
    for (const std::string& line : lines)
      if (!known.contains(line)) text_ += "+ " + line + "\n";
  }
  void add_whole(const std::string& title, const std::vector<std::string>& lines) {
    text_ += "== " + title + "\n";
    for (const std::string& line : lines) text_ += line + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  static std::string name_in(const std::string& line) {
    return line.substr(0, line.find(' ', line.find(' ') + 1));
  }

  std::vector<std::string> first_;
  std::string text_;
};

}  // namespace plumb
