// Logs that commands read: the options of how, and messages on what was left out.
#include <unistd.h>

#include <cstdio>

#include "base/paths.h"
#include "base/text.h"
#include "plumbline/command.h"
#include "results/analysis/analyze.h"
#include "results/formats/log_format.h"

namespace plumb {
namespace {

constexpr std::int64_t kMostIterations = 100'000'000;

// A default for logs whose runs' own length isn't known.
std::string of_runs(const std::string& otherwise) {
  return otherwise + "; for a log of another length that of its result.json in runs";
}

}  // namespace

OptionSpec log_format_option(std::string& target) {
  std::vector<std::string> names{"auto"};
  for (const LogFormat* format : log_formats()) names.emplace_back(format->name);
  OptionSpec spec = choice_option(
      "--log-format", target, names,
      fmt::format(
          "how lines of logs are read; auto looks at them, and reads Plumbline's own as {}; else one of {}",
          names[1], fmt::join(names.begin() + 1, names.end(), ", ")));
  spec.value_name = "auto|NAME";
  spec.aliases = {"--dialect"};
  return spec;
}

OptionSpec warmup_option(WindowChoice& window) {
  return number_option("--warmup", "N", window.warmup, {0, kMostIterations},
                       "leading iterations of logs left out")
      .with_default(of_runs("20; plsc 50; tf2 100"));
}

OptionSpec iterations_option(WindowChoice& window) {
  return number_option("--iters", "N", window.iterations, {1, kMostIterations},
                       "iterations of logs looked at, warm-up included")
      .with_default(of_runs("120; plsc 150; tf2 600"));
}

void say(const std::string& line) {
  std::fputs(fmt::format("plumbline: {}\n", printable(line)).c_str(), stderr);
}

void print_messages(const std::vector<std::string>& notes, const std::vector<Note>& left_out, bool verbose) {
  const std::size_t most_lines = verbose ? 0 : isatty(STDERR_FILENO) ? 20 : 4;
  for (const std::string& line : message_lines(notes, left_out, most_lines)) say(line);
}

}  // namespace plumb
