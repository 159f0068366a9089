#include "results/analysis/analyze.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/text.h"
#include "results/formats/own_format.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

// Batch and precision.
using Kind = std::pair<std::int64_t, std::string>;

Kind kind_of(const LogName& name) {
  return {name.batch_per_device, name.precision};
}

std::string text_of(const Kind& kind) {
  return fmt::format("b{}_{}", kind.first, kind.second);
}

// A stretch of given iterations counts whole, but for what the format needs before its first figure.
Window default_window(const LogFormat& format, const Stretch& stretch) {
  if (!stretch.from && !stretch.to) return format.default_window;
  const std::int64_t step = std::max<std::int64_t>(format.index_step, 1);
  Window window{format.default_window.iterations, (format.least_warmup() + step - 1) / step * step};
  if (format.has_no_end)
    window.iterations = window.warmup + step;
  else if (stretch.to)
    window.iterations = *stretch.to - stretch.from.value_or(0) + 1;
  return window;
}

// The window for people; of a stretch by its ends.
std::string window_text(const LogFormat& format, const Window& window, const Stretch& stretch) {
  std::string text = window_text(format, window);
  const std::string end = stretch.to ? std::to_string(*stretch.to) : "the end of each log";
  if (stretch.from)
    text = fmt::format("iterations {} to {}", *stretch.from, end);
  else if (stretch.to)
    text = "iterations up to " + end;
  return stretch.epoch ? fmt::format("{} of epoch {}", text, *stretch.epoch) : text;
}

Window choose_window(const LogFormat& format, const AnalyzeOptions& options) {
  const Window usual = default_window(format, options.stretch);
  const Window window{options.window.iterations.value_or(usual.iterations),
                      options.window.warmup.value_or(usual.warmup)};
  const std::int64_t lowest_warmup = format.least_warmup();
  const std::int64_t step = std::max<std::int64_t>(format.index_step, 1);
  if (window.warmup >= window.iterations)
    throw Error(ExitCode::usage, "--warmup {} leaves nothing of --iters {}; pass a smaller one",
                window.warmup, window.iterations);
  if (window.warmup < lowest_warmup)
    throw Error(ExitCode::usage, "--warmup {} is too small for the log format {}, {}; pass at least {}",
                window.warmup, format.name,
                format.lowest_warmup > 0 ? "whose lines begin after as many iterations"
                                         : "which times from the end of a warm-up iteration",
                lowest_warmup);
  if (window.warmup % step != 0)
    throw Error(ExitCode::usage,
                "--warmup {}: expected a multiple of {}, the iterations of a line of {}; pass {}",
                window.warmup, step, format.name, window.warmup / step * step);
  if (window.warmup / step >= window.iterations / step)
    throw Error(ExitCode::usage,
                "--iters {0} leaves no whole line of {1} after --warmup {3}, as a line has {2} iterations; "
                "pass at least {4}",
                window.iterations, format.name, step, window.warmup, window.warmup + step);
  return window;
}

// The format that most of the files show; without any line, the first.
const LogFormat& recognize(const std::vector<LogFile>& files, std::vector<std::string>& notes) {
  std::map<const LogFormat*, std::int64_t> votes;
  std::map<const LogFormat*, const LogFormat*> as_well;
  std::string unknown;
  for (const LogFile& file : files) {
    try {
      const Recognition found = recognize_format(file.path);
      ++votes[found.format];
      if (found.as_well) as_well[found.format] = found.as_well;
      if (found.format || !found.has_lines || !unknown.empty()) continue;
      unknown = printable(file.path.string());
      if (!found.training_line.empty()) unknown += ", " + found.training_line;
    } catch (const Error&) {  // read_log names the file
    }
  }
  votes.erase(nullptr);
  if (votes.empty() && !unknown.empty())
    throw Error(ExitCode::bad_data,
                "no line fits a known log format ({}); see plumbline analyze --list-formats", unknown);
  const LogFormat* const best =
      *std::ranges::max_element(log_formats(), {}, [&](const LogFormat* format) { return votes[format]; });
  if (const auto other = as_well.find(best); other != as_well.end())
    notes.push_back(fmt::format("lines fit the log format {0} as well; --log-format {0} reads them so",
                                other->second->name));
  return *best;
}

const LogFormat& choose_format(const std::string& name, const std::vector<LogFile>& files,
                               std::vector<std::string>& notes, std::shared_ptr<const LogFormat>& own) {
  if (name == "auto") return recognize(files, notes);
  if (const LogFormat* found = find_log_format(name)) return *found;
  if (name.ends_with(kOwnFormatEnd)) return *(own = read_own_format(name));
  throw Error(ExitCode::usage, "--log-format {}: expected one of auto, {}", name,
              fmt::join(mapped(log_formats(), &LogFormat::name), ", "));
}

OtherFormats other_formats(const AnalyzeOptions& options) {
  return options.log_format == "auto" ? OtherFormats::refuse : OtherFormats::pass_over;
}

// Reads every file. A file with a defect and a copy of an earlier file go to the bad ones.
void read_runs(const LogTree& tree, const fs::path& dir, const AnalyzeOptions& options, ReadLogs& read) {
  std::set<std::string> caveats;
  std::vector<std::string> oddities;
  std::map<std::pair<std::int64_t, std::uint64_t>, std::string> seen;
  for (const LogFile& file : tree.files) {
    const LogReading log = read_log(*read.format, file.path, read.window, file.name.size(), options.stretch,
                                    other_formats(options));
    const std::string path = display_path(file.path, dir);
    if (log.defect) {
      read.bad.push_back({log.defect->kind, log.defect->text, path});
      continue;
    }
    const auto [first, is_new] = seen.emplace(std::make_pair(log.bytes, log.hash), path);
    if (!is_new) {
      read.bad.push_back({"duplicated", "it is a copy of " + first->second, path});
      continue;
    }
    read.runs.push_back({file, log.images_per_second, log.hash});
    if (!log.caveat.empty())
      caveats.insert((file.name.case_name == kNoCase ? path : file.name.case_name) + ": " + log.caveat);
    if (!log.stall.empty()) oddities.push_back(path + " " + log.stall);
    if (!log.change.empty()) oddities.push_back(path + ": " + log.change);
    if (!log.divergence.empty()) oddities.push_back(path + ": " + log.divergence);
  }
  read.notes.insert(read.notes.end(), oddities.begin(), oddities.end());
  read.notes.insert(read.notes.end(), caveats.begin(), caveats.end());
}

[[noreturn]] void refuse_useless(const fs::path& dir, const std::vector<Note>& bad) {
  const std::string reason =
      bad.empty() ? "; put logs at <N>n<G>g/<model>_b<BS>_<prec>_<run>.log in it"
                  : fmt::format(" ({}); {}: {}", count_flaws(bad), bad.front().subject, bad.front().text);
  if (fs::is_directory(dir))
    throw Error(ExitCode::bad_data, "no log in folder '{}' is usable{}", dir.string(), reason);
  throw Error(ExitCode::bad_data, "log '{}' is not usable{}", dir.string(), reason);
}

// Keeps one configuration per model and case.
void keep_one_configuration(std::vector<LogRun>& runs, const fs::path& dir, std::vector<Note>& bad) {
  std::map<std::pair<std::string, std::string>, std::map<Kind, std::int64_t>> in_case;
  std::map<std::string, std::map<Kind, std::int64_t>> in_model;
  for (const LogRun& run : runs) {
    const LogName& name = run.file.name;
    ++in_case[{name.model, name.case_name}][kind_of(name)];
    ++in_model[name.model][kind_of(name)];
  }
  const auto weight = [&](const LogName& name, const Kind& kind) {
    return std::pair(in_case[{name.model, name.case_name}].at(kind), in_model[name.model].at(kind));
  };
  const auto is_outweighed = [&](const LogRun& run) {
    const LogName& name = run.file.name;
    const Kind own = kind_of(name);
    std::optional<Kind> heaviest;  // of the others
    for (const auto& [other, count] : in_case[{name.model, name.case_name}])
      if (other != own && (!heaviest || weight(name, other) > weight(name, *heaviest))) heaviest = other;
    if (!heaviest || weight(name, own) > weight(name, *heaviest)) return false;
    bad.push_back({"mixed", fmt::format("it is {} among runs of {}", text_of(own), text_of(*heaviest)),
                   display_path(run.file.path, dir)});
    return true;
  };
  std::erase_if(runs, is_outweighed);
}

// `figures` in the order of the runs' numbers.
CaseSummary summarize(const LogName& name, const std::vector<double>& figures, const LogFormat& format) {
  const double total = std::accumulate(figures.begin(), figures.end(), 0.0);
  const double middle = median(figures);
  return {.model = name.model,
          .case_name = name.case_name,
          .precision = name.precision,
          .batch_per_device = name.batch_per_device,
          .runs = static_cast<std::int64_t>(figures.size()),
          .average = format.round_average(total / static_cast<double>(figures.size())),
          .median = format.round_median(middle),
          .exact_median = middle};
}

std::vector<CaseSummary> summarise_cases(const std::vector<LogRun>& runs, const LogFormat& format) {
  std::vector<CaseSummary> cases;
  for (const LogRun& first : runs) {
    const LogName& name = first.file.name;
    const auto is_same = [&](const auto& other) {
      return other.model == name.model && other.case_name == name.case_name;
    };
    if (std::ranges::any_of(cases, is_same)) continue;
    std::vector<double> figures;
    for (const LogRun& run : runs)
      if (is_same(run.file.name)) figures.push_back(run.images_per_second);
    cases.push_back(summarize(name, figures, format));
  }
  std::ranges::stable_sort(
      cases, {}, [](const CaseSummary& c) { return std::tie(c.model, c.batch_per_device, c.precision); });
  return cases;
}

void add_speedups(std::vector<CaseSummary>& cases, const LogFormat& format, std::vector<std::string>& notes) {
  std::set<std::string> without;
  for (CaseSummary& summary : cases) {
    if (summary.case_name == kNoCase) continue;
    const auto base = std::ranges::find_if(cases, [&](const CaseSummary& c) {
      return c.case_name == "1n1g" && c.model == summary.model &&
             c.batch_per_device == summary.batch_per_device && c.precision == summary.precision;
    });
    if (base != cases.end() && base->median.get<double>() > 0)
      summary.speedup = format.speedup(summary.exact_median, base->exact_median);
    else
      without.insert(
          fmt::format("{}_{}", summary.model, text_of({summary.batch_per_device, summary.precision})));
  }
  for (const std::string& name : without)
    notes.push_back(fmt::format("no speedup for {}: it has no usable 1n1g run", name));
}

using Dictionary = std::map<std::string, std::map<std::string, CaseFigures>>;

Json dictionary_of(const std::vector<CaseSummary>& cases) {
  Dictionary sorted;
  for (const CaseSummary& summary : cases)
    sorted[summary.model][summary.case_name] = {.average_speed = {summary.average},
                                                .batch_size_per_device = summary.batch_per_device,
                                                .median_speed = {summary.median},
                                                .speedup = {summary.speedup}};
  return fields::written(sorted);
}

}  // namespace

const Document kAnalyzeDocument{"plumbline.analyze/1",
                                "What analyze --json prints: DLPerf's dictionary, by model and case.",
                                json_schema_of<Dictionary>};

ReadLogs read_logs(const fs::path& path, const AnalyzeOptions& options) {
  std::error_code error;
  const bool is_one = fs::is_regular_file(path, error);
  if (is_one && fs::file_size(path, error) == 0)
    throw Error(ExitCode::bad_data, "log '{}' is empty; check that the run began", printable(path.string()));
  LogTree tree = is_one ? LogTree{{{path, name_of_log(path, options.one_log)}}, {}} : find_logs(path);
  std::vector<std::string> notes;
  std::shared_ptr<const LogFormat> own;
  const LogFormat& format = choose_format(options.log_format, tree.files, notes, own);
  if (is_one) add_size(format, tree.files.front(), other_formats(options));
  ReadLogs read{.own_format = std::move(own),
                .format = &format,
                .window = choose_window(format, options),
                .bad = std::move(tree.bad),
                .notes = std::move(notes)};
  read_runs(tree, is_one ? path.parent_path() : path, options, read);
  if (read.own_format && read.runs.empty() && !tree.files.empty()) refuse_misfit(format, tree.files.front());
  return read;
}

Analysis analyze_logs(const fs::path& path, const AnalyzeOptions& options) {
  ReadLogs read = read_logs(path, options);
  const LogFormat& format = *read.format;
  keep_one_configuration(read.runs, path, read.bad);
  if (read.runs.empty()) refuse_useless(path, read.bad);
  Analysis analysis{.log_format = std::string(format.name),
                    .window = window_text(format, read.window, options.stretch),
                    .cases = summarise_cases(read.runs, format),
                    .bad = std::move(read.bad),
                    .notes = std::move(read.notes)};
  add_speedups(analysis.cases, format, analysis.notes);
  analysis.dictionary = dictionary_of(analysis.cases);
  return analysis;
}

}  // namespace plumb
