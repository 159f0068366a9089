#include "base/console/progress.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>

#include "base/console/messages.h"

namespace plumb {
namespace {

// What `act` prints to a stream other than a terminal.
std::string printed(const std::function<void(std::FILE*)>& act) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* stream = open_memstream(&text, &size);
  act(stream);
  std::fclose(stream);
  const std::unique_ptr<char, decltype(&free)> owner(text, free);
  return {text, size};
}

int count(const std::string& text, char wanted) {
  return static_cast<int>(std::count(text.begin(), text.end(), wanted));
}

TEST(Progress, LineShowsSpeedAndRemainingTime) {
  const std::string line = progress_line(60, 120, 25.34, 91, 80);
  EXPECT_TRUE(line.ends_with("] 60/120  25.3 images/s  1:31 left")) << line;
  EXPECT_EQ(count(line, '='), 20);
  EXPECT_NE(progress_line(1, 2, 1, 3661, 80).find("1:01:01 left"), std::string::npos);
}

TEST(Progress, LineFitsTheTerminal) {
  for (int columns = 1; columns < 120; ++columns)
    EXPECT_LT(static_cast<int>(progress_line(60, 120, 25.34, 91, columns).size()), std::max(columns, 1))
        << columns;
}

// 600 iterations of `seconds` each.
std::string lines_off_a_terminal(double seconds) {
  return printed([&](std::FILE* stream) {
    ProgressBar bar(stream, terminal_of(stream), 600, 8);
    for (int i = 1; i <= 600; ++i) bar.update(i, seconds * i);
  });
}

TEST(Progress, OffATerminalARunOverAMinuteHasALineEveryTenSecondsOrTenPercent) {
  EXPECT_EQ(lines_off_a_terminal(0.05), "");
  const std::string minutes = lines_off_a_terminal(0.15);
  EXPECT_EQ(count(minutes, '\n'), 8) << minutes;  // of 90 s: each 10 s at most
  EXPECT_TRUE(minutes.starts_with("67/600  53.3 images/s  1:20 left\n")) << minutes;
  EXPECT_EQ(count(lines_off_a_terminal(12), '\n'), 10);  // of two hours: each 10 %
}

TEST(Progress, WithoutAStreamNothingIsDrawn) {
  ProgressBar bar(nullptr, {.is_terminal = true}, 10, 8);
  for (int i = 1; i <= 10; ++i) bar.update(i, 100 * i);
}

TEST(Progress, ColorsAreForTerminalsThatKnowThemAndForNobodyWithNoColor) {
  const auto drawn = [](bool colors) {
    return printed([&](std::FILE* stream) {
      ProgressBar bar(stream, {.is_terminal = true, .columns = 80, .colors = colors}, 2, 8);
      bar.update(1, 1);
      Messages(stream, {.is_terminal = true, .colors = colors}, Loudness::usual).warn("beware");
    });
  };
  EXPECT_NE(drawn(true).find("[===="), std::string::npos);
  EXPECT_NE(drawn(true).find("\x1b[33mbeware\x1b[m\n"), std::string::npos);
  EXPECT_EQ(drawn(false).find("\x1b[3"), std::string::npos);
}

TEST(Progress, OnATerminalDrawsSeldomAndClearsTheLine) {
  const std::string text = printed([](std::FILE* stream) {
    ProgressBar bar(stream, {.is_terminal = true, .columns = 80}, 1000, 8);
    for (int i = 1; i <= 1000; ++i) bar.update(i, 0.001 * i);
  });
  EXPECT_LE(count(text, '\r'), 7);
  EXPECT_GE(count(text, '\r'), 4);
  EXPECT_NE(text.find("8000.0 images/s"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\r\x1b[K"));
}

TEST(Messages, OffATerminalThereAreAtMostFourLines) {
  const std::string text = printed([](std::FILE* stream) {
    Messages messages(stream, terminal_of(stream), Loudness::usual);
    for (int i = 0; i < 10; ++i) messages.say("line");
    messages.last("the end");
    messages.last("not again");
  });
  EXPECT_EQ(text, "line\nline\nthe end\n");
}

TEST(Messages, AWarningFindsALineWhateverWasSaidBefore) {
  const std::string text = printed([](std::FILE* stream) {
    Messages messages(stream, terminal_of(stream), Loudness::usual);
    for (int i = 0; i < 10; ++i) messages.say("line");
    messages.warn("beware");
    messages.warn("beware again");
    messages.say("line");
    messages.last("the end");
  });
  EXPECT_EQ(text, "line\nline\nbeware\nthe end\n");
}

TEST(Messages, WarningsLeaveTheLastLineFree) {
  const std::string text = printed([](std::FILE* stream) {
    Messages messages(stream, terminal_of(stream), Loudness::usual);
    for (int i = 0; i < 10; ++i) messages.warn("beware");
    messages.last("the end");
  });
  EXPECT_EQ(text, "beware\nbeware\nbeware\nthe end\n");
}

TEST(Messages, QuietLeavesOnlyTheLastLine) {
  EXPECT_EQ(printed([](std::FILE* stream) {
              Messages messages(stream, terminal_of(stream), Loudness::quiet);
              messages.say("line");
              messages.warn("beware");
              messages.last("the end");
            }),
            "the end\n");
}

TEST(Messages, DetailsAreForTheVerboseWithTheirOrigin) {
  const auto printed_at = [](Loudness loudness) {
    return printed([&](std::FILE* stream) {
      Messages messages(stream, terminal_of(stream), loudness, "node1 rank 0: ");
      messages.detail("engine 5 of 100%");
      messages.last("runs/one");
    });
  };
  EXPECT_EQ(printed_at(Loudness::verbose), "node1 rank 0: engine 5 of 100%\nruns/one\n");
  EXPECT_EQ(printed_at(Loudness::usual), "runs/one\n");
}

}  // namespace
}  // namespace plumb
