#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <thread>

#include "base/error.h"
#include "base/output.h"
#include "base/paths.h"
#include "base/text_table.h"
#include "base/units.h"
#include "base/whole_file.h"
#include "tests/bench/expect_error.h"
#include "tests/scratch_folder.h"

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

TEST(WrappedLines, CutLongPathsBehindASlash) {
  EXPECT_EQ(wrapped_lines("a one/two/three b", 8), (Lines{"a", "one/two/", "three b"}));
  EXPECT_EQ(wrapped_lines("a/considerable b", 5), (Lines{"a/", "considerable", "b"}));
}

TEST(WrappedLines, AreOneEmptyLineWithoutWords) {
  EXPECT_EQ(wrapped_lines(" ", 5), (Lines{""}));
}

TEST(WrappedLines, HangBehindTheirIndents) {
  const std::string word(60, 'x');
  EXPECT_EQ(hanging_lines(word + " " + word, "    ", "- "), "- " + word + "\n    " + word + "\n");
}

TEST(Text, ListsAreSplitAndJoined) {
  EXPECT_EQ(split("a,b,", ','), (Lines{"a", "b", ""}));
  EXPECT_EQ(split("", ','), (Lines{""}));
  std::string list;
  for (const std::string& part : split("a,b,c", ',')) append_part(list, part, " and ");
  EXPECT_EQ(list, "a and b and c");
}

TEST(Text, LettersAreReplacedAndEscaped) {
  EXPECT_EQ(replaced("it's 'so'", '\'', "''"), "it''s ''so''");
  EXPECT_EQ(markup_escaped("<a b=\"c\">&'"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;");
}

TEST(Text, NumbersHaveTheirNoun) {
  EXPECT_EQ(counted(1, "run"), "1 run");
  EXPECT_EQ(counted(std::size_t{0}, "run"), "0 runs");
}

TEST(Text, PercentagesAreRoundedWithoutANegativeZero) {
  EXPECT_EQ(percent_text(0.0734), "7.3");
  EXPECT_EQ(percent_text(-0.0004), "0.0");
  EXPECT_EQ(given_percent(0.0025), "0.25 %");
}

TEST(Error, FormatsItsSentence) {
  EXPECT_STREQ(Error(ExitCode::usage, "option {}: {} is {}", "--bs", 3, 0.5).what(), "option --bs: 3 is 0.5");
  EXPECT_STREQ(Error(ExitCode::usage, std::string("{} stays")).what(), "{} stays");
}

TEST(Output, ReplacesNothingUnlessAsked) {
  const ScratchFolder folder;
  Output output{.option = "-o", .path = folder / "new"};
  check_output(output);
  EXPECT_TRUE(folder.list().empty());
  write_output(output, "one");
  const std::vector<std::string> words = {"-o " + output.path + ": the file exists already",
                                          "pass another -o, or --overwrite"};
  expect_error(ExitCode::cannot_create, words, [&] { check_output(output); });
  expect_error(ExitCode::cannot_create, words, [&] { write_output(output, "two"); });
  EXPECT_EQ(read_text(output.path), "one");
  output.overwrite = true;
  check_output(output);
  write_output(output, "two");
  EXPECT_EQ(read_text(output.path), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Output, OnlyRegularFilesAreReplaced) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "folder");
  std::filesystem::create_symlink("nowhere", folder / "link");
  for (const char* name : {"folder", "link"})
    expect_error(ExitCode::cannot_create, {"only regular files are replaced; pass another -o"},
                 [&] { check_output({.option = "-o", .path = folder / name, .overwrite = true}); });
  for (const std::string& path : {std::string(), folder.path() + "/new/"})
    expect_error(ExitCode::cannot_create, {"-o " + path + ": expected the name of a file"},
                 [&] { check_output({.option = "-o", .path = path}); });
}

TEST(OutputFile, ANameThatIsTakenMeanwhileIsNotReplaced) {
  const ScratchFolder folder;
  {
    OutputFile file({.option = "-o", .path = folder / "new"});
    file.write("ours");
    folder.write("new", "theirs");
    expect_error(ExitCode::cannot_create, {"the file exists already; pass another -o"},
                 [&] { file.publish(); });
  }
  EXPECT_EQ(read_text(folder / "new"), "theirs");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(OutputFolder, RemovesWhatItMadeUnlessItIsUsed) {
  const ScratchFolder folder;
  const std::string used = folder / "used", unused = folder / "used/not/at/all/";
  {
    const OutputFolder one({.option = "--output", .path = used}, used);
    const OutputFolder other({.option = "--output", .path = unused}, unused);
    EXPECT_TRUE(std::filesystem::is_directory(unused));
    folder.write("used/file", "");
  }
  EXPECT_EQ(folder.list("used"), std::vector<std::string>{"file"});
  folder.write("used/there/file", "");
  expect_error(ExitCode::cannot_create, {"--output x: cannot create " + used + "/file/x: Not a directory"},
               [&] { OutputFolder({.option = "--output", .path = "x"}, used + "/file/x"); });
  expect_error(ExitCode::cannot_create, {"File name too long"}, [&] {
    OutputFolder({.option = "--output", .path = "x"}, used + "/new/" + std::string(256, 'x'));
  });
  EXPECT_EQ(folder.list("used"), (std::vector<std::string>{"file", "there"}));
}

TEST(AtomicFile, IsReplacedWholeAndRenamedWithoutReplacing) {
  const ScratchFolder folder;
  EXPECT_EQ(replace_file(folder / "a", "one"), "");
  EXPECT_EQ(replace_file(folder / "a", "two"), "");
  EXPECT_EQ(replace_file(folder / "b", "three"), "");
  EXPECT_EQ(rename_new(folder / "a", folder / "b"), EEXIST);
  EXPECT_EQ(rename_new(folder / "a", folder / "c"), 0);
  EXPECT_EQ(std::filesystem::file_size(folder / "c"), 3U);
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  EXPECT_NE(replace_file("/nowhere/file", "text").find("No such file"), std::string::npos);
}

TEST(LockWithin, WaitsForAnotherHolderAndNoLonger) {
  const ScratchFolder folder;
  UniqueFd first(::open(folder.path().c_str(), O_RDONLY)), second(::open(folder.path().c_str(), O_RDONLY));
  EXPECT_EQ(lock_within(first.get(), std::chrono::milliseconds(0)), 0);
  EXPECT_EQ(lock_within(second.get(), std::chrono::milliseconds(20)), EWOULDBLOCK);
  first.reset();
  EXPECT_EQ(lock_within(second.get(), std::chrono::milliseconds(0)), 0);
  EXPECT_EQ(lock_within(-1, std::chrono::milliseconds(20)), EBADF);
}

// As of ranks and jobs that share a home.
TEST(AtomicFile, IsWholeHoweverManyReplaceItAtOnce) {
  const ScratchFolder folder;
  {
    std::vector<std::jthread> writers;
    for (int writer = 0; writer < 4; ++writer)
      writers.emplace_back([&folder, writer] {
        const std::string text(50'000, static_cast<char>('a' + writer));
        for (int turn = 0; turn < 20; ++turn) {
          EXPECT_EQ(replace_file(folder / "a", text), "");
          const std::string found = read_text(folder / "a");
          EXPECT_EQ(found, std::string(text.size(), found.front()));
        }
      });
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(WholeFile, HasTheBytesOfTheFile) {
  const ScratchFolder folder;
  const std::string bytes("a\0\n\xff", 4);
  EXPECT_EQ(read_whole_file(folder.write("four", bytes), {.remedy = "", .most_bytes = 4}), bytes);
  EXPECT_EQ(read_whole_file(folder.write("none", ""), {.remedy = ""}), "");
}

TEST(WholeFile, IsRefusedWithItsNameItsSizeTheLimitAndARemedy) {
  const ScratchFolder folder;
  const auto refused = [&](const std::string& name, const std::vector<std::string>& words) {
    expect_error(ExitCode::bad_data, words,
                 [&] { read_whole_file(folder / name, {.remedy = "pass another"}); });
  };
  const auto large = folder.write_sparse("large");
  refused("large", {"file '" + large.string() +
                    "': expected at most 256 MiB, found 1099511627776 bytes; pass another"});
  refused("none", {"cannot read file '", "none': No such file or directory; pass another"});
  refused("", {"expected a regular file; pass another"});
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  refused("pipe", {"pipe': expected a regular file"});
  expect_error(ExitCode::bad_data, {"--x large: expected at most 1 MiB, found 1099511627776 bytes"},
               [&] { read_whole_file(large, {.remedy = "", .name = "--x large", .most_bytes = 1 << 20}); });
}

TEST(Printable, KeepsLettersAndDropsWhatTerminalsAct) {
  EXPECT_EQ(printable("M\u00fcnchen \u2026 \u65e5\u672c \U0001f600"),
            "M\u00fcnchen \u2026 \u65e5\u672c \U0001f600");
  EXPECT_EQ(printable("a\x1b[2Jb\nc\td\x7f\r"), "a?[2Jb?c?d??");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "??31m");  // U+009B begins a sequence, too
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "?31m");
  EXPECT_EQ(printable("\xe0\x82\x9b"
                      "31m"),
            "???31m");  // the same, longer than it need be
  EXPECT_EQ(printable("\xc3"), "?");
  EXPECT_EQ(printable_lines("a\tb\n\x1b[A", ' '), "a\tb\n [A");
}

}  // namespace
}  // namespace plumb
