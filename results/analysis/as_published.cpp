// Analyzes a folder as DLPerf's scripts (commit c89430b) do, step by step, with their mistakes.
#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "base/text.h"
#include "results/analysis/analyze.h"
#include "results/dialects/tokens.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

[[noreturn]] void dies(const std::string& reason) {
  throw Error(ExitCode::bad_data, reason);
}

std::int64_t number_in(std::string_view text, const std::string& what) {
  const std::optional<std::int64_t> value = python_int(text);
  if (!value || *value > 1'000'000'000 || *value < -1'000'000'000) dies(what + " is no number");
  return *value;
}

// Python's str.strip(): a set of characters, at both ends.
std::string_view strip(std::string_view text, std::string_view characters) {
  const std::size_t begin = text.find_first_not_of(characters);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(characters) - begin + 1);
}

struct PublishedName {
  std::string model, precision;
  std::int64_t batch_per_device = 0, run = 0;
  RunSize size;
};

PublishedName parse_name(std::string_view case_name, std::string_view file_name, bool reads_any_case) {
  const std::vector<std::string> fields = split(file_name, '_');
  if (fields.size() < 4) dies("its name has fewer than four fields between '_'");
  PublishedName name{fields[0], fields[2]};
  name.batch_per_device = number_in(strip(fields[1], "b"), "the batch in its name");
  name.run = number_in(strip(fields[3], ".log"), "the run in its name");
  const std::int64_t nodes = number_in(case_name.substr(0, 1), "the number of nodes in its folder's name");
  std::int64_t devices = 0;
  if (case_name.size() == 4 || case_name.size() == 5)
    devices =
        number_in(case_name.substr(2, case_name.size() - 3), "the number of devices in its folder's name");
  else if (!reads_any_case)
    dies("its folder's name has neither four nor five characters");
  name.size = {static_cast<double>(nodes * devices * name.batch_per_device), nodes, devices};
  return name;
}

// The runs of one case, in the order in which their numbers came first.
struct PublishedCase {
  std::vector<std::int64_t> numbers;
  std::vector<double> figures;
  PublishedFigure last;
  PublishedName name;  // of the file read last

  void take(const PublishedName& file, PublishedFigure figure) {
    const auto place = static_cast<std::size_t>(std::ranges::find(numbers, file.run) - numbers.begin());
    if (place == numbers.size()) numbers.push_back(file.run);
    figures.resize(numbers.size());
    figures[place] = figure.images_per_second;
    last = figure;
    name = file;
  }
};

using Cases = std::map<std::string, PublishedCase>;

// */*.log by name, run numbers in the order of their values (glob itself gives no order).
std::vector<fs::path> published_files(const fs::path& dir) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::path& entry : visible_entries(dir, error)) {
    std::error_code ignored;
    if (!fs::is_directory(entry, ignored)) continue;
    for (const fs::path& file : visible_entries(entry, ignored))
      if (file.filename().string().ends_with(".log")) files.push_back(file);
  }
  std::ranges::sort(files, {}, [](const fs::path& path) {
    return std::make_tuple(path.parent_path(), path.string().size(), path.string());
  });
  return files;
}

CaseSummary summarise(const std::string& case_name, const PublishedCase& runs, const Cases& cases,
                      const Dialect& dialect) {
  CaseSummary summary{.model = runs.name.model,
                      .case_name = case_name,
                      .precision = runs.name.precision,
                      .batch_per_device = runs.name.batch_per_device,
                      .runs = std::ssize(runs.figures),
                      .average = runs.last.no_end ? Json(0) : Json(runs.last.images_per_second),
                      .speedup = 1.0};
  const auto base = cases.find("1n1g");
  const bool has_base = base != cases.end() && base->second.last.images_per_second != 0;
  if (!has_base && !dialect.makes_a_table()) return summary;
  const std::vector<double>& figures = runs.figures;
  const double total = std::accumulate(figures.begin(), figures.end(), 0.0);
  summary.exact_median = median(figures);
  summary.average = dialect.round_average(total / static_cast<double>(figures.size()));
  summary.median = dialect.round_median(summary.exact_median);
  // The middle one of integers is an integer to Python, but not to NumPy.
  if (dialect.medians_in_python() && figures.size() % 2 == 1 && summary.exact_median == 0) summary.median = 0;
  summary.speedup = has_base ? dialect.speedup(summary.exact_median, median(base->second.figures)) : 0.0;
  return summary;
}

Json entry_of(const CaseSummary& summary) {
  Json entry{{"average_speed", summary.average}, {"batch_size_per_device", summary.batch_per_device}};
  if (!summary.median.is_null()) entry["median_speed"] = summary.median;
  entry["speedup"] = summary.speedup;
  return entry;
}

}  // namespace

Analysis analyze_as_published(const fs::path& dir, const Dialect& dialect, const Window& window) {
  std::map<std::string, Cases> models;
  for (const fs::path& path : published_files(dir)) {
    try {
      const std::string case_name = path.parent_path().filename().string();
      const PublishedName name =
          parse_name(case_name, path.filename().string(), dialect.published_reads_any_case);
      LineReader lines(path);
      const PublishedFigure figure = dialect.published(lines, window, name.size);
      if (!figure.is_left_out) models[name.model][case_name].take(name, figure);
    } catch (const Error& error) {
      throw Error(error.code(),
                  "the published script fails on {}: {}; leave out --as-published or move the file away",
                  display_path(path, dir), error.what());
    }
  }
  if (models.empty())
    throw Error(ExitCode::bad_data,
                "log folder '{}' has no usable log; logs lie at <N>n<G>g/<model>_b<BS>_<prec>_<run>.log",
                dir.string());
  Analysis analysis{.dialect = std::string(dialect.name), .window = window_text(dialect, window)};
  std::map<std::string, std::map<std::string, Json>> sorted;
  for (const auto& [model, cases] : models) {
    if (!cases.contains("1n1g") && !dialect.makes_a_table())
      sorted[model]["1n1g"] = Json{{"average_speed", Json::object()}};
    for (const auto& [case_name, runs] : cases) {
      analysis.cases.push_back(summarise(case_name, runs, cases, dialect));
      sorted[model][case_name] = entry_of(analysis.cases.back());
    }
  }
  analysis.dictionary = Json(sorted);
  analysis.notes.push_back("as published: nothing was checked; short, repeated and mixed logs count");
  return analysis;
}

}  // namespace plumb
