// What several commands share: options, and messages on what was left out.
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "base/paths.h"
#include "base/text.h"
#include "plumbline/command.h"
#include "results/analysis/analyze.h"
#include "results/formats/log_format.h"
#include "results/formats/own_format.h"

namespace plumb {
namespace {

constexpr std::int64_t kMostIterations = 100'000'000;

}  // namespace

OptionSpec log_format_option(std::string& target) {
  std::vector<std::string> names{"auto"};
  for (const LogFormat* format : log_formats()) names.emplace_back(format->name);
  OptionSpec spec = choice_option("--log-format", target, names,
                                  "format of the logs; plumbline analyze --list-formats lists them\n"
                                  "auto: by their lines\nFILE.toml: as the file describes");
  spec.value_name = "auto|NAME|FILE.toml";
  spec.aliases = {"--dialect"};
  spec.set = [&target, choose = spec.set](const std::string& text) {
    if (text.ends_with(kOwnFormatEnd))
      target = text;
    else
      choose(text);
  };
  return spec;
}

OptionSpec warmup_option(WindowChoice& window) {
  return number_option("--warmup", "N", window.warmup, {0, kMostIterations},
                       "leading iterations of a log that averages leave out")
      .with_default("20; plsc 50; tf2 100");
}

OptionSpec iterations_option(WindowChoice& window) {
  return number_option("--iters", "N", window.iterations, {1, kMostIterations},
                       "iterations of a log to read, warm-up included")
      .with_default("120; plsc 150; tf2 600");
}

std::vector<OptionSpec> one_log_options(AnalyzeOptions& options) {
  Stretch& stretch = options.stretch;
  OneLog& log = options.one_log;
  return {number_option("--epoch", "N", stretch.epoch, {0, kMostIterations},
                        "read this epoch only, as the log numbers it")
              .with_default("all")
              .rare(),
          number_option("--from", "I", stretch.from, {0, kMostIterations},
                        "first iteration to read, numbered as in the log, without a warm-up")
              .with_default("the log's first")
              .rare(),
          number_option("--to", "I", stretch.to, {0, kMostIterations}, "last iteration to read")
              .with_default("by --iters")
              .rare(),
          text_option("--case", "<N>n<G>g", log.case_name, "nodes and devices per node of a single log")
              .with_default("from the log")
              .rare(),
          number_option("--bs", "N", log.batch_per_device, {0, kMostIterations},
                        "images per device and step of a single log")
              .with_default("from the log")
              .rare(),
          text_option("--precision", "P", log.precision, "precision of a single log")
              .with_default("from the log")
              .rare()};
}

OptionSpec link_option(std::optional<double>& gigabytes_per_second) {
  return quantity_option("--link", "25Gbit/s", gigabytes_per_second,
                         {{"Gbit/s", 0.125}, {"Mbit/s", 0.125e-3}, {"GB/s", 1}, {"MB/s", 1e-3}},
                         {.lowest = 0, .highest = 1e6, .above_lowest = true},
                         "bandwidth that a link between two hosts should reach");
}

std::string file_in_folders(const std::vector<std::string>& folders, const char* name) {
  std::error_code error;
  for (const std::string& folder : folders)
    if (const auto file = fs::path(folder) / name; fs::is_regular_file(file, error)) return file;
  return "";
}

void say(const std::string& line) {
  std::fputs(fmt::format("plumbline: {}\n", printable(line)).c_str(), stderr);
}

void print_messages(const std::vector<std::string>& notes, const std::vector<Note>& left_out, bool verbose) {
  const std::size_t most_lines = verbose ? 0 : isatty(STDERR_FILENO) ? 20 : 4;
  for (const std::string& line : message_lines(notes, left_out, most_lines)) say(line);
}

}  // namespace plumb
