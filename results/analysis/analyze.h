// From a folder of logs to average, median and speedup of each case: the dictionary of DLPerf's analyzers,
// equal to theirs to the last printed digit, with logs that can't be trusted left out and named.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "results/analysis/log_tree.h"
#include "results/formats/read_log.h"
#include "results/record/fields.h"

namespace plumb {

// Where it is empty: the format's default.
struct WindowChoice {
  std::optional<std::int64_t> iterations, warmup;
};

struct AnalyzeOptions {
  std::string log_format = "auto";  // or a name of log_formats(), or a file of an own format
  WindowChoice window = {};
  Stretch stretch = {};
  OneLog one_log = {};
};

struct LogRun {
  LogFile file;
  double images_per_second = 0;  // rounded to 2 decimals
  std::uint64_t hash = 0;        // of the file's bytes
};

// Every log of a folder, before cases are made of them.
struct ReadLogs {
  std::shared_ptr<const LogFormat> own_format;  // of a file
  const LogFormat* format = nullptr;
  Window window;
  std::vector<LogRun> runs;        // in find_logs' order; of equal files the first
  std::vector<Note> bad;           // left out
  std::vector<std::string> notes;  // sentences on what a format's script makes of them
};

// `path`: a folder of logs, or one log. Throws Error: bad_data if it isn't there, usage for an impossible
// window or an unknown format, or if a size must be known and isn't.
ReadLogs read_logs(const fs::path& path, const AnalyzeOptions& options);

// The runs of one case that have one configuration.
struct CaseSummary {
  std::string model, case_name, precision;
  std::int64_t batch_per_device = 0;
  std::int64_t runs = 0;
  Json average, median, speedup;  // images/s, images/s, ratio; null: not known
  double exact_median = 0;        // before rounding
};

// A number as an analyzer prints it, a whole one without ".0"; null: not known.
struct PrintedNumber {
  Json value;
  static Json schema() { return {{"type", {"number", "null"}}}; }
  friend Json to_json(const PrintedNumber& number) { return number.value; }
};

// A case in the analyzers' dictionary.
struct CaseFigures {
  PrintedNumber average_speed;
  std::int64_t batch_size_per_device = 0;
  PrintedNumber median_speed, speedup;

  static void fields(auto& self, auto&& each) {
    each("average_speed", self.average_speed, Field{"images/s"});
    each("batch_size_per_device", self.batch_size_per_device);
    each("median_speed", self.median_speed, Field{"images/s"});
    each("speedup", self.speedup, Field{"median against the median of 1n1g"});
  }
};

struct Analysis {
  std::string log_format;
  std::string window;              // what counts: "iterations 21 to 120"
  std::vector<CaseSummary> cases;  // by model, batch, precision; then by devices
  Json dictionary;                 // {model: {case: CaseFigures}}
  std::vector<Note> bad;           // left out
  std::vector<std::string> notes;  // sentences on what the figures are not
};

// Every run's figure is rounded to 2 decimals, then a case's runs are averaged and their median taken;
// speedup is median / median of 1n1g, null without a 1n1g of the same model, batch and precision. If a
// case has several configurations, the one with the most runs counts (over the whole folder if equal). Throws
// Error: bad_data if the folder isn't there or nothing usable is in it, usage for an impossible window or an
// unknown format.
Analysis analyze_logs(const fs::path& path, const AnalyzeOptions& options);

// A heading per model, batch and precision; columns case, runs, average, median, speedup.
std::string table_text(const Analysis& analysis);
std::string markdown_text(const Analysis& analysis);

// Files that were left out, with the reason, then the notes. More than `most_lines` lines end in one that
// counts the rest by flaw and names the option that shows all; 0: no limit.
std::vector<std::string> message_lines(std::vector<std::string> notes, const std::vector<Note>& bad,
                                       std::size_t most_lines);

extern const Document kAnalyzeDocument;

// "2 truncated, 1 wrongly named"
std::string count_flaws(const std::vector<Note>& bad);

// Python's json.dumps(dictionary, sort_keys=True), so "1.0", "NaN" and a blank after each comma and colon.
std::string dictionary_text(const Json& dictionary);

}  // namespace plumb
