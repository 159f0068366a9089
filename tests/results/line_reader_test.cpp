#include "results/formats/line_reader.h"

#include <gtest/gtest.h>

#include "tests/bench/expect_error.h"
#include "tests/results/synthetic_log.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  const ScratchFolder folder;
  LineReader reader(folder.write("a.log", text));
  std::vector<std::string> lines;
  while (const auto line = reader.next()) lines.emplace_back(*line);
  EXPECT_EQ(reader.line_number(), static_cast<std::int64_t>(lines.size()));
  EXPECT_EQ(reader.bytes_read(), static_cast<std::int64_t>(text.size()));
  return lines;
}

using Lines = std::vector<std::string>;

TEST(LineReader, EndsLinesAsPythonDoes) {
  EXPECT_EQ(lines_of("a\nb\r\nc\rd"), (Lines{"a", "b", "c", "d"}));
  EXPECT_EQ(lines_of("\r\r\n\n"), (Lines{"", "", ""}));
  EXPECT_EQ(lines_of(""), Lines{});
}

TEST(LineReader, KeepsNulAndOtherBytes) {
  const std::string text("a\0b\xff\n", 5);
  EXPECT_EQ(lines_of(text), (Lines{text.substr(0, 4)}));
}

// A line end, including \r\n itself, at every position around the end of a chunk.
TEST(LineReader, GivesWholeLinesAcrossChunks) {
  for (std::size_t length = (64 << 10) - 3; length < (64 << 10) + 3; ++length)
    for (const char* end : {"\n", "\r\n", "\r"})
      EXPECT_EQ(lines_of(std::string(length, 'x') + end + "y" + end), (Lines{std::string(length, 'x'), "y"}))
          << length;
}

TEST(LineReader, RefusesALineWithoutEnd) {
  expect_error(ExitCode::bad_data, {"line 2", "1 MiB"}, [] { lines_of("a\n" + std::string(3 << 20, 'x')); });
}

TEST(LineReader, RefusesWhatIsNoFile) {
  const ScratchFolder folder;
  expect_error(ExitCode::bad_data, {"not a regular file"}, [&] { LineReader reader(folder.path()); });
  expect_error(ExitCode::bad_data, {"not a regular file"}, [&] { LineReader reader(folder / "none"); });
}

TEST(LineReader, HashesContentNotNames) {
  const ScratchFolder folder;
  const auto hash_of = [&](const std::string& name, const std::string& text) {
    LineReader reader(folder.write(name, text));
    while (reader.next()) {
    }
    return reader.hash();
  };
  EXPECT_EQ(hash_of("a", "one\ntwo\n"), hash_of("b", "one\ntwo\n"));
  EXPECT_NE(hash_of("a", "one\ntwo\n"), hash_of("c", "one\ntwp\n"));
}

}  // namespace
}  // namespace plumb
