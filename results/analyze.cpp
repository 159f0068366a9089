#include "results/analyze.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "models/error.h"
#include "results/analysis_text.h"
#include "results/statistics.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct Run {
  LogFile file;
  double images_per_second = 0;
};

using Configuration = std::tuple<std::int64_t, std::string>;  // batch, precision

Configuration configuration_of(const LogName& name) {
  return {name.batch_per_device, name.precision};
}

std::string text_of(const Configuration& configuration) {
  return "b" + std::to_string(std::get<0>(configuration)) + "_" + std::get<1>(configuration);
}

Window choose_window(const Dialect& dialect, const AnalyzeOptions& options) {
  const Window window{options.window.iterations.value_or(dialect.default_window.iterations),
                      options.window.warmup.value_or(dialect.default_window.warmup)};
  const std::int64_t lowest_warmup = !dialect.values_are_stamps ? 0 : options.as_published ? 2 : 1;
  const std::string given = "option --warmup: " + std::to_string(window.warmup);
  const std::string iterations = std::to_string(window.iterations);
  const std::int64_t step = dialect.index_step;
  if (window.warmup >= window.iterations)
    throw Error(ExitCode::usage, given + " leaves nothing of --iters " + iterations + "; give a smaller one");
  if (window.warmup < lowest_warmup)
    throw Error(ExitCode::usage, given + " is too small for the dialect " + std::string(dialect.name) +
                                     ", which times from the end of a warm-up iteration; give at least " +
                                     std::to_string(lowest_warmup));
  if (!options.as_published && window.warmup % step != 0)
    throw Error(ExitCode::usage, given + " is no multiple of " + std::to_string(step) + ", and a line of " +
                                     std::string(dialect.name) + " is of as many iterations; give " +
                                     std::to_string(window.warmup / step * step));
  if (!options.as_published && window.warmup / step >= window.iterations / step)
    throw Error(ExitCode::usage, "option --iters: " + iterations + " leaves no whole line of " +
                                     std::string(dialect.name) + ", which are of " + std::to_string(step) +
                                     " iterations, after --warmup " + std::to_string(window.warmup) +
                                     "; give at least " + std::to_string(window.warmup + step));
  return window;
}

// The dialect that most of the files show.
const Dialect* recognise(const std::vector<LogFile>& files) {
  std::map<const Dialect*, std::int64_t> votes;
  for (const LogFile& file : files) {
    try {
      if (const Dialect* dialect = recognise_dialect(file.path)) ++votes[dialect];
    } catch (const Error&) {  // read_log names the file
    }
  }
  const Dialect* best = nullptr;
  for (const Dialect* dialect : dialects())
    if (votes.count(dialect) && (!best || votes[dialect] > votes[best])) best = dialect;
  return best;
}

const Dialect& choose_dialect(const std::string& name, const std::vector<LogFile>& files) {
  if (name == "auto") {
    const Dialect* found = recognise(files);
    return found ? *found : *dialects().front();
  }
  const Dialect* found = find_dialect(name);
  if (!found) {
    std::string known = "auto";
    for (const Dialect* dialect : dialects()) known += ", " + std::string(dialect->name);
    throw Error(ExitCode::usage, "option --dialect: '" + name + "' is not known; give one of " + known);
  }
  return *found;
}

// Reads every file; what has a defect, and what is a copy of a file read before, goes to the bad ones.
std::vector<Run> read_runs(const LogTree& tree, const Dialect& dialect, const Window& window,
                           const fs::path& dir, Analysis& analysis) {
  std::vector<Run> runs;
  std::vector<BadFile>& bad = analysis.bad;
  std::set<std::string> caveats;
  std::map<std::pair<std::int64_t, std::uint64_t>, std::string> seen;
  for (const LogFile& file : tree.files) {
    LogReading log = read_log(dialect, file.path, window, file.name.size());
    const std::string path = display_path(file.path, dir);
    if (log.defect) {
      bad.push_back({path, *log.defect});
      continue;
    }
    const auto [first, is_new] = seen.emplace(std::make_pair(log.bytes, log.hash), path);
    if (!is_new) {
      bad.push_back({path, {Flaw::duplicated, "it is a copy of " + first->second}});
      continue;
    }
    runs.push_back({file, log.images_per_second});
    if (!log.caveat.empty()) caveats.insert(file.name.case_name + ": " + log.caveat);
  }
  analysis.notes.insert(analysis.notes.end(), caveats.begin(), caveats.end());
  return runs;
}

// Keeps one configuration per model and case.
void keep_one_configuration(std::vector<Run>& runs, const fs::path& dir, std::vector<BadFile>& bad) {
  std::map<std::pair<std::string, std::string>, std::map<Configuration, std::int64_t>> in_case;
  std::map<std::string, std::map<Configuration, std::int64_t>> in_model;
  for (const Run& run : runs) {
    ++in_case[{run.file.name.model, run.file.name.case_name}][configuration_of(run.file.name)];
    ++in_model[run.file.name.model][configuration_of(run.file.name)];
  }
  const auto wins_over = [&](const LogName& name, const Configuration& own, const Configuration& other) {
    const auto& here = in_case[{name.model, name.case_name}];
    const auto& everywhere = in_model[name.model];
    return std::make_pair(here.at(own), everywhere.at(own)) >
           std::make_pair(here.at(other), everywhere.at(other));
  };
  const auto defect_of = [&](const LogName& name) -> std::optional<Defect> {
    const Configuration own = configuration_of(name);
    for (const auto& [other, count] : in_case[{name.model, name.case_name}])
      if (other != own && !wins_over(name, own, other))
        return Defect{Flaw::mixed, "it is " + text_of(own) + " among runs of " + text_of(other)};
    return std::nullopt;
  };
  std::vector<Run> kept;
  for (Run& run : runs) {
    if (const std::optional<Defect> defect = defect_of(run.file.name))
      bad.push_back({display_path(run.file.path, dir), *defect});
    else
      kept.push_back(std::move(run));
  }
  runs = std::move(kept);
}

// `figures` in the order of the runs' numbers.
CaseSummary summarise(const LogName& name, const std::vector<double>& figures, const Dialect& dialect) {
  double total = 0;
  for (const double figure : figures) total += figure;
  return {.model = name.model,
          .case_name = name.case_name,
          .precision = name.precision,
          .batch_per_device = name.batch_per_device,
          .runs = static_cast<std::int64_t>(figures.size()),
          .average = dialect.round_average(total / static_cast<double>(figures.size())),
          .median = round_numpy(median(figures), 2)};
}

std::vector<CaseSummary> summarise_cases(const std::vector<Run>& runs, const Dialect& dialect) {
  std::vector<CaseSummary> cases;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const LogName& name = runs[i].file.name;
    const auto is_same = [&](const CaseSummary& c) {
      return c.model == name.model && c.case_name == name.case_name;
    };
    if (std::any_of(cases.begin(), cases.end(), is_same)) continue;
    std::vector<double> figures;
    for (const Run& run : runs)
      if (run.file.name.model == name.model && run.file.name.case_name == name.case_name)
        figures.push_back(run.images_per_second);
    cases.push_back(summarise(name, figures, dialect));
  }
  std::stable_sort(cases.begin(), cases.end(), [](const CaseSummary& a, const CaseSummary& b) {
    return std::tie(a.model, a.batch_per_device, a.precision) <
           std::tie(b.model, b.batch_per_device, b.precision);
  });
  return cases;
}

void add_speedups(std::vector<CaseSummary>& cases, std::vector<std::string>& notes) {
  std::set<std::string> without;
  for (CaseSummary& summary : cases) {
    const auto base = std::find_if(cases.begin(), cases.end(), [&](const CaseSummary& c) {
      return c.case_name == "1n1g" && c.model == summary.model &&
             c.batch_per_device == summary.batch_per_device && c.precision == summary.precision;
    });
    if (base != cases.end() && base->median.get<double>() > 0)
      summary.speedup = round_numpy(summary.median.get<double>() / base->median.get<double>(), 2);
    else
      without.insert(summary.model + "_" + text_of({summary.batch_per_device, summary.precision}));
  }
  for (const std::string& name : without)
    notes.push_back("no speedup for " + name + ": there is no usable 1n1g run of it");
}

Json dictionary_of(const std::vector<CaseSummary>& cases) {
  std::map<std::string, std::map<std::string, Json>> sorted;
  for (const CaseSummary& summary : cases)
    sorted[summary.model][summary.case_name] = Json{{"average_speed", summary.average},
                                                    {"batch_size_per_device", summary.batch_per_device},
                                                    {"median_speed", summary.median},
                                                    {"speedup", summary.speedup}};
  return Json(sorted);
}

}  // namespace

Analysis analyze_logs(const fs::path& dir, const AnalyzeOptions& options) {
  LogTree tree = find_logs(dir);
  const Dialect& dialect = choose_dialect(options.dialect, tree.files);
  const Window window = choose_window(dialect, options);
  if (options.as_published) return analyze_as_published(dir, dialect, window);
  Analysis analysis{.dialect = std::string(dialect.name),
                    .window = window_text(dialect, window),
                    .bad = std::move(tree.bad)};
  std::vector<Run> runs = read_runs(tree, dialect, window, dir, analysis);
  keep_one_configuration(runs, dir, analysis.bad);
  if (runs.empty()) {
    std::string why = "; logs lie at <N>n<G>g/<model>_b<BS>_<prec>_<run>.log in it";
    if (!analysis.bad.empty())
      why = " (" + count_flaws(analysis.bad) + "); " + analysis.bad.front().path + ": " +
            analysis.bad.front().defect.reason;
    throw Error(ExitCode::bad_data, "log folder '" + dir.string() + "' has no usable log" + why);
  }
  analysis.cases = summarise_cases(runs, dialect);
  add_speedups(analysis.cases, analysis.notes);
  analysis.dictionary = dictionary_of(analysis.cases);
  return analysis;
}

}  // namespace plumb
