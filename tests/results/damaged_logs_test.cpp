// A log of every format with realistic damage: truncated, lines lost, doubled or swapped, two logs in one
// file. A reader gives the whole log's figure or names the defect; it never silently gives another figure.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include "tests/results/example_logs.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

class DamagedLog : public testing::TestWithParam<const LogFormat*> {
 protected:
  const LogFormat& format() const { return *GetParam(); }

  bool fits(const std::string& line) const {
    return format().read_line(line, {.images_per_step = 1}).fit == Fit::whole;
  }
  LogReading read(const ExampleLog& log, const std::string& text) const {
    fs::remove(folder_ / "a.log");  // ext4 writes a file to disk that is truncated and written again
    return read_log(format(), folder_.write("a.log", text), format().default_window, log.size);
  }
  // Damage to the first lines makes a log that begins later, which is read, and named as such.
  void expect_same_or_named(const ExampleLog& log, const std::string& text, const std::string& damage) const {
    const LogReading reading = read(log, text);
    const bool is_named = reading.defect || reading.caveat.find("begins with iteration") != std::string::npos;
    if (!is_named && reading.images_per_second != log.images_per_second)
      ADD_FAILURE() << log.name << ", " << damage << ": " << reading.images_per_second << " images/s, whole "
                    << log.images_per_second;
    EXPECT_FALSE(reading.defect && reading.defect->text.empty()) << log.name << ", " << damage;
  }
  // Applies `damage` once per line, in long logs to some hundred of them; it modifies the lines and describes
  // the damage.
  void expect_for_every_line(const std::function<std::string(Lines& lines, std::size_t line)>& damage) const {
    for (const ExampleLog& log : logs_)
      for (std::size_t line = 0; line < log.lines.size(); line += 1 + log.lines.size() / 200) {
        Lines lines = log.lines;
        const std::string done = damage(lines, line) + " line " + std::to_string(line + 1);
        expect_same_or_named(log, whole_text(lines), done);
      }
  }

  // Found once for all tests of this process.
  static const std::vector<ExampleLog>& logs_of(const LogFormat* format) {
    static std::map<const LogFormat*, std::vector<ExampleLog>> found;
    if (!found.contains(format)) found[format] = whole_logs(*format);
    return found[format];
  }

  const std::vector<ExampleLog>& logs_ = logs_of(GetParam());
  ScratchFolder folder_;
};

TEST_P(DamagedLog, HasAWholeExample) {
  EXPECT_FALSE(logs_.empty());
}

TEST_P(DamagedLog, CutAtALine) {
  expect_for_every_line([](Lines& lines, std::size_t line) {
    lines.resize(line);
    return "cut before";
  });
}

TEST_P(DamagedLog, CutInsideALine) {
  for (const ExampleLog& log : logs_) {
    const std::string text = whole_text(log.lines);
    const std::size_t tail = std::min<std::size_t>(text.size(), 250);
    for (std::size_t size = text.size() - tail; size < text.size(); ++size)
      expect_same_or_named(log, text.substr(0, size), "cut after byte " + std::to_string(size));
  }
}

// A log may begin with any iteration, so that a log without its first line is a whole log of others.
TEST_P(DamagedLog, WithoutALine) {
  for (const ExampleLog& log : logs_) {
    bool is_behind_first = false;
    for (std::size_t line = 0; line < log.lines.size(); ++line) {
      Lines lines = log.lines;
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(line));
      if (is_behind_first)
        expect_same_or_named(log, whole_text(lines), "without line " + std::to_string(line + 1));
      if (fits(log.lines[line])) is_behind_first = true;
    }
  }
}

TEST_P(DamagedLog, WithALineTwice) {
  expect_for_every_line([](Lines& lines, std::size_t line) {
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(line), std::string(lines[line]));
    return "twice";
  });
}

TEST_P(DamagedLog, WithALineAtTheEndAgain) {
  expect_for_every_line([](Lines& lines, std::size_t line) {
    lines.push_back(std::string(lines[line]));
    return "at the end again";
  });
}

TEST_P(DamagedLog, WithLinesSwapped) {
  expect_for_every_line([](Lines& lines, std::size_t line) {
    if (line + 1 < lines.size()) std::swap(lines[line], lines[line + 1]);
    return "later by one";
  });
}

TEST_P(DamagedLog, WithALineTornAndGoneOn) {
  for (const std::size_t quarters : {1, 2, 3})
    expect_for_every_line([&](Lines& lines, std::size_t line) {
      if (quarters == 2 || line + 8 > lines.size())
        lines[line].resize(lines[line].size() * quarters / 4);  // the next line continues on the same one
      return "torn after " + std::to_string(quarters) + " quarters of";
    });
}

TEST_P(DamagedLog, TwoRunsInTurn) {
  for (const ExampleLog& log : logs_) {
    if (log.size.devices_per_node == 2) continue;  // two lines of an iteration may be those of two ranks
    Lines lines;
    for (const std::string& line : log.lines) lines.insert(lines.end(), {line, line});
    EXPECT_TRUE(read(log, whole_text(lines)).defect) << log.name;
  }
}

TEST_P(DamagedLog, TwoRunsOneBehindTheOther) {
  for (const ExampleLog& log : logs_) {
    expect_same_or_named(log, whole_text(log.lines) + whole_text(log.lines), "the log twice");
    for (std::size_t line = 1; line < log.lines.size(); line += 7) {
      const Lines begun(log.lines.begin(), log.lines.begin() + static_cast<std::ptrdiff_t>(line));
      expect_same_or_named(log, whole_text(begun) + whole_text(log.lines),
                           "begun again after " + std::to_string(line));
    }
  }
}

// Another format's log, or another version's, in the same file. Lines of the same format that continue the
// numbering can't be told from the run's own.
TEST_P(DamagedLog, GoesOnInAnotherFormat) {
  for (const LogFormat* other : log_formats()) {
    const std::vector<ExampleLog>& others = logs_of(other);
    if (others.empty()) continue;
    const Lines& foreign = others.front().lines;
    if (std::ranges::any_of(foreign, [&](const std::string& line) { return fits(line); })) continue;
    for (const ExampleLog& log : logs_)
      for (const std::size_t from : {log.lines.size() / 8, log.lines.size() / 2, log.lines.size() - 1}) {
        Lines lines(log.lines.begin(), log.lines.begin() + static_cast<std::ptrdiff_t>(from));
        lines.insert(lines.end(), foreign.begin(), foreign.end());
        expect_same_or_named(log, whole_text(lines),
                             "as " + std::string(other->name) + " from line " + std::to_string(from + 1));
      }
  }
}

// Plumbline's own lines reveal the number of images per step.
TEST_P(DamagedLog, GoesOnAsARunOfAnotherSize) {
  if (!format().is_own_layout || logs_.size() < 2) return;
  for (const std::size_t from : {std::size_t{1}, logs_[0].lines.size() / 2, logs_[0].lines.size() - 1}) {
    Lines lines = logs_[1].lines;
    std::copy_n(logs_[0].lines.begin(), from, lines.begin());
    EXPECT_TRUE(read(logs_[0], whole_text(lines)).defect) << from;
    EXPECT_TRUE(read(logs_[1], whole_text(lines)).defect) << from;
  }
}

INSTANTIATE_TEST_SUITE_P(Logs, DamagedLog, testing::ValuesIn(log_formats().begin(), log_formats().end()),
                         [](const auto& tested) { return std::string(tested.param->name); });

}  // namespace
}  // namespace plumb
