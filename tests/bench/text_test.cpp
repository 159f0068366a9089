#include <gtest/gtest.h>

#include "base/wrapped_lines.h"

namespace plumb {
namespace {

using Lines = std::vector<std::string>;

TEST(WrappedLines, FillUpToTheWidth) {
  EXPECT_EQ(wrapped_lines("one two  three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrapped_lines("one two three", 6), (Lines{"one", "two", "three"}));
}

TEST(WrappedLines, LeaveALongerWordAlone) {
  EXPECT_EQ(wrapped_lines("a considerable b", 5), (Lines{"a", "considerable", "b"}));
}

TEST(WrappedLines, CutLongPathsBehindASlashIfAsked) {
  EXPECT_EQ(wrapped_lines("a one/two/three b", 8), (Lines{"a", "one/two/three", "b"}));
  EXPECT_EQ(wrapped_lines("a one/two/three b", 8, LongWords::cut_paths), (Lines{"a", "one/two/", "three b"}));
  EXPECT_EQ(wrapped_lines("a/considerable b", 5, LongWords::cut_paths), (Lines{"a/", "considerable", "b"}));
}

TEST(WrappedLines, AreOneEmptyLineWithoutWords) {
  EXPECT_EQ(wrapped_lines(" ", 5), (Lines{""}));
}

}  // namespace
}  // namespace plumb
