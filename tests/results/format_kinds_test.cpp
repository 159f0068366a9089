// What becomes of a whole log of every format when it is changed in the ways in which people's logs differ:
// the table tests/data/format_kinds.txt.
#include <gtest/gtest.h>

#include <regex>

#include "base/text_table.h"
#include "tests/golden_text.h"
#include "tests/results/example_logs.h"

namespace plumb {
namespace {

constexpr const char* kForeign =
    "elapsed 3 sec of evaluation; TimeHistory imgs_per_sec eval epoch time: 3 ms, Rank: Total: Speed: fast\n";

Lines replaced_in(Lines lines, const std::regex& what, const std::string& with) {
  for (std::string& line : lines) line = std::regex_replace(line, what, with);
  return lines;
}

// The log, then its next epoch, if its lines count epochs. Global steps and clocks begin anew with it, which
// is named; formats without an end count the second epoch's warm-up.
Lines with_next_epoch(const Lines& lines) {
  static const std::regex kEpoch(R"(((?:Epoch|epoch|Pass)[: ]*\[?)0\b)");
  Lines next = replaced_in(lines, kEpoch, "$011");
  if (next == lines) return {};
  next.insert(next.begin(), lines.begin(), lines.end());
  return next;
}

Lines twice(const Lines& lines) {
  Lines both = lines;
  both.insert(both.end(), lines.begin(), lines.end());
  return both;
}

Lines with_foreign_lines(const Lines& lines) {
  Lines more;
  for (const std::string& line : lines) more.insert(more.end(), {line, kForeign});
  return more;
}

Lines behind(const std::string& prefix, const Lines& lines) {
  Lines more;
  for (const std::string& line : lines)
    more.push_back(prefix + "\x1b[32m" + line.substr(0, line.size() - 1) + "\x1b[0m\n");
  return more;
}

// From the middle on, losses are nan.
Lines with_nan(const Lines& lines) {
  static const std::regex kLoss(R"(((?:[lL]oss(?: is|\])?)[ :=]+|cross_entropy : |lossvalue=)[0-9.e+-]+)");
  Lines late(lines.begin() + static_cast<std::ptrdiff_t>(lines.size() / 2), lines.end());
  Lines changed = replaced_in(late, kLoss, "$01nan");
  if (changed == late) return {};
  changed.insert(changed.begin(), lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(late.size()));
  return changed;
}

// A word where the middle of the log has a number.
Lines with_a_word(const LogFormat& format, const Lines& lines) {
  static const std::regex kNumber(R"(\d+)");
  const auto fit_of = [&](const std::string& line) {
    return format.read_line(line.substr(0, line.find('\n')), {.images_per_step = 1}).fit;
  };
  Lines changed = lines;
  for (std::size_t i = lines.size() / 2; i < lines.size(); ++i) {
    if (fit_of(lines[i]) != Fit::whole) continue;
    for (std::sregex_iterator at(lines[i].begin(), lines[i].end(), kNumber), end; at != end; ++at) {
      changed[i] = lines[i];
      changed[i].replace(static_cast<std::size_t>(at->position()), static_cast<std::size_t>(at->length()),
                         "x");
      if (fit_of(changed[i]) == Fit::near) return changed;
    }
    changed[i] = lines[i];
  }
  return {};
}

std::string outcome(const LogFormat& format, const ExampleLog& log, const Lines& lines) {
  if (lines.empty()) return "-";
  const ScratchFolder folder;
  const LogReading now =
      read_log(format, folder.write("a.log", whole_text(lines)), format.default_window, log.size);
  if (now.defect)
    return now.defect->kind + (now.defect->text.find("--iters ") == std::string::npos ? "" : ", options");
  if (!now.divergence.empty()) return "diverged";
  if (now.images_per_second != log.images_per_second) return "another figure";
  return "same";
}

std::string recognized(const LogFormat& format, const ExampleLog& log) {
  const ScratchFolder folder;
  const Recognition found = recognize_format(folder.write("a.log", whole_text(log.lines)));
  if (found.format == &format) return "itself";
  return found.format ? std::string(found.format->name) : "nothing";
}

TEST(FormatKinds, EveryFormatReadsEveryKind) {
  std::vector<TextRow> table{{"format", "recognized", "next epoch", "twice", "foreign lines", "mpirun",
                              "torchrun", "srun", "kubectl", "nan", "word", "half"}};
  for (const LogFormat* format : log_formats()) {
    const std::vector<ExampleLog> logs = whole_logs(*format, 1);
    ASSERT_FALSE(logs.empty()) << format->name;
    const ExampleLog& log = logs.front();
    const Lines& lines = log.lines;
    const Lines half(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(lines.size() / 2));
    TextRow row{std::string(format->name), recognized(*format, log)};
    for (const Lines& changed :
         {with_next_epoch(lines), twice(lines), with_foreign_lines(lines), behind("[1,0]<stdout>:", lines),
          behind("[default0]:", lines), behind("0: ", lines), behind("[pod/job-0/main] ", lines),
          with_nan(lines), with_a_word(*format, lines), half})
      row.push_back(outcome(*format, log, changed));
    table.push_back(row);
  }
  expect_golden("format_kinds.txt", padded_table(table, "l"));
}

}  // namespace
}  // namespace plumb
