#include "results/compare/samples.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/shallow_json.h"
#include "base/text.h"
#include "base/whole_file.h"
#include "results/record/schema.h"

namespace plumb {
namespace {

constexpr const char* kCaseFile = ".plumbline-case";
constexpr const char *kSweepFile = "sweep.json", *kFormerSweepFile = "journal.jsonl";  // of `plumbline sweep`

// Samples that are collected from several paths.
struct Collection {
  LoadedSamples loaded;
  std::set<fs::path> seen;                     // files, by their one name
  std::size_t met_again = 0;                   // files that a second path led to
  std::map<std::uint64_t, std::string> taken;  // a file's hash, and its name for messages
};

std::string shown(const fs::path& path) {
  return printable(path.string());
}

// False for a file that was met before, which a second path may well lead to.
bool is_new(Collection& collection, const fs::path& file) {
  std::error_code error;
  const fs::path only_name = fs::canonical(file, error);
  const bool added = collection.seen.insert(error ? file : only_name).second;
  if (!added) ++collection.met_again;
  return added;
}

void leave_out(Collection& collection, const fs::path& path, const std::string& kind,
               const std::string& reason) {
  collection.loaded.bad.push_back({kind, reason, shown(path)});
}

void take(Collection& collection, Configuration configuration, Measurement run, std::uint64_t hash) {
  const auto [first, is_first] = collection.taken.emplace(hash, run.origin);
  if (!is_first) {
    leave_out(collection, run.origin, "duplicated", "it is a copy of " + first->second);
    return;
  }
  std::vector<Sample>& samples = collection.loaded.samples;
  auto same = std::ranges::find(samples, configuration, &Sample::configuration);
  if (same == samples.end()) same = samples.insert(samples.end(), {std::move(configuration), {}});
  same->runs.push_back(std::move(run));
}

// When a run began, seconds since 1970: run folders have it in their names (…_20261122-134500_1, the host's
// local time), logs when they were written. 0: not known.
std::int64_t started_at(const fs::path& path) {
  const std::string name = path.filename();
  const std::size_t dash = name.find_last_of('-');
  std::tm time{};
  if (dash != std::string::npos && dash >= 8 &&
      strptime(name.c_str() + dash - 8, "%Y%m%d-%H%M%S", &time) != nullptr) {
    time.tm_isdst = -1;
    return std::mktime(&time);
  }
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mtime : 0;
}

// `origin`: the run's name for the user, its folder or the file itself.
void add_result(Collection& collection, const fs::path& file, const fs::path& origin) {
  if (!is_new(collection, file)) return;
  try {
    ResultFile result = read_result_file(file);
    const double figure = result.record.images_per_second.mean;
    if (result.record.status != "ok") {
      leave_out(collection, origin, "unfinished", printable(failure_text(result.record)));
    } else if (!std::isfinite(figure) || figure <= 0) {
      leave_out(collection, origin, "malformed",
                "its images_per_second has an impossible mean; run the bench again");
    } else {
      Configuration configuration = configuration_of(result.record);
      take(collection, std::move(configuration),
           {shown(origin), figure, std::move(result.record), file.parent_path(),
            read_surroundings(file.parent_path()), started_at(file.parent_path())},
           result.hash);
    }
  } catch (const Error& error) {
    leave_out(collection, origin, "unreadable", error.what());
  }
}

// What Plumbline writes beside its logs (bench/output/log_writer.h); empty if it isn't there.
std::string read_case_file(const fs::path& folder) {
  const fs::path file = folder / kCaseFile;
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return "";
  return read_whole_file(file, {.remedy = "remove it, if the bench did not write it"});
}

// `case_text` says that logs are Plumbline's own, and more of their configuration than their names do. Other
// writers of its lines (results/peers) say who they are.
Configuration configuration_of_log(const fs::path& file, const LogName& name, const LogFormat& format,
                                   const std::string& case_text) {
  if (case_text.empty())
    return begins_with_own_line(file) ? configuration_of(name) : configuration_of(name, format);
  Configuration configuration = configuration_of(name);
  const Json json = parse_shallow_json(case_text);
  if (!json.is_object()) return configuration;
  configuration.image_size = value_or<std::int64_t>(json, "image_size");
  configuration.framework = value_or(json, "framework", configuration.framework);
  if (const auto data = value_or<std::string>(json, "data"); data == "synthetic") configuration.data = data;
  if (const auto settings = json.find("settings"); settings != json.end() && settings->is_object())
    for (const auto& [key, value] : settings->items())
      if (value.is_string()) add_log_setting(key, value, configuration);
  std::istringstream words(value_or<std::string>(json, "head"));
  std::string rate;
  for (std::string option, value; words >> option >> value;) {
    if (option == "--head") configuration.head = value;
    if (option == "--classes") configuration.classes = std::atoll(value.c_str());
    if (option == "--sample-rate") rate = " " + value;
  }
  if (configuration.head == "pfc") configuration.head += rate;
  return configuration;
}

// `path`: a folder of logs, or one log.
void add_logs(Collection& collection, const fs::path& path, const AnalyzeOptions& options) {
  ReadLogs logs = read_logs(path, options);
  const fs::path dir = fs::is_directory(path) ? path : path.parent_path();
  for (const Note& bad : logs.bad) leave_out(collection, dir / bad.subject, bad.kind, bad.text);
  for (const LogRun& run : logs.runs) {
    if (!is_new(collection, run.file.path)) continue;
    const char* kind = "unreadable";
    try {
      const std::string case_text = read_case_file(run.file.path.parent_path());
      kind = "wrongly named";
      Configuration configuration =
          configuration_of_log(run.file.path, run.file.name, *logs.format, case_text);
      take(collection, std::move(configuration),
           {.origin = shown(run.file.path),
            .images_per_second = run.images_per_second,
            .started = started_at(run.file.path)},
           run.hash);
    } catch (const Error& error) {
      leave_out(collection, run.file.path, kind, error.what());
    }
  }
}

enum class Content { run_folder, log_folder, other };

Content content_of(const fs::path& entry) {
  std::error_code error;
  if (!fs::is_directory(entry, error)) return Content::other;
  const fs::file_status result = fs::status(entry / kResultFile, error);
  // A folder that may not be looked into is taken for a run's, which then is named as unreadable.
  if (fs::exists(result) || result.type() == fs::file_type::none) return Content::run_folder;
  int nodes = 0, devices = 0;
  return parse_case_name(entry.filename().string(), nodes, devices) ? Content::log_folder : Content::other;
}

std::vector<fs::path> entries_of(const fs::path& dir) {
  std::error_code error;
  std::vector<fs::path> entries = visible_entries(dir, error);
  if (error)
    throw Error(ExitCode::bad_data, "cannot list folder '{}': {}; allow reading it or pass another one",
                shown(dir), error.message());
  return entries;
}

// Adds the runs or the logs that the folder itself holds; false if it has neither.
bool add_own_entries(Collection& collection, const fs::path& dir, const std::vector<fs::path>& entries,
                     const AnalyzeOptions& options) {
  std::vector<fs::path> runs, logs;
  for (const fs::path& entry : entries) {
    const Content content = content_of(entry);
    if (content == Content::run_folder) runs.push_back(entry);
    if (content == Content::log_folder) logs.push_back(entry);
  }
  for (const fs::path& run : runs) add_result(collection, run / kResultFile, run);
  if (runs.empty() && !logs.empty()) add_logs(collection, dir, options);
  // Logs that lie beside run folders tell of the same runs once more.
  if (!runs.empty())
    for (const fs::path& log : logs)
      leave_out(collection, log, "mixed", "logs next to run folders are not read; pass a folder of logs");
  return !runs.empty() || !logs.empty();
}

// Adds what folders up to `levels` below hold, and appends their names.
void add_below(Collection& collection, const std::vector<fs::path>& entries, int levels,
               const AnalyzeOptions& options, std::vector<std::string>& found) {
  std::error_code ignored;
  for (const fs::path& entry : entries) {
    if (!fs::is_directory(entry, ignored)) continue;
    const std::vector<fs::path> below = visible_entries(entry, ignored);
    try {
      if (add_own_entries(collection, entry, below, options))
        found.push_back(shown(entry));
      else if (levels > 1)
        add_below(collection, below, levels - 1, options, found);
    } catch (const Error& error) {  // logs of no known format, for example
      leave_out(collection, entry, "unreadable", error.what());
    }
  }
}

void add_folder(Collection& collection, const fs::path& dir, const AnalyzeOptions& options) {
  const std::vector<fs::path> entries = entries_of(dir);
  if (add_own_entries(collection, dir, entries, options)) return;
  constexpr int kLevelsBelow = 2;
  std::vector<std::string> found;
  add_below(collection, entries, kLevelsBelow, options, found);
  if (found.empty())
    throw Error(ExitCode::bad_data,
                "folder '{}' has no runs (result.json) or logs (1n1g, 1n8g, …), and neither do the two "
                "levels below; pass a folder of runs or logs",
                shown(dir));
  collection.loaded.notes.push_back(fmt::format("'{}' holds no runs itself; read {} below it: {}", shown(dir),
                                                counted(found.size(), "folder"), fmt::join(found, ", ")));
}

bool is_sweep(const fs::path& dir) {
  std::error_code error;
  return (fs::is_regular_file(dir / kSweepFile, error) ||
          fs::is_regular_file(dir / kFormerSweepFile, error)) &&
         fs::is_directory(dir / "runs", error);
}

void add_path(Collection& collection, const fs::path& path, const AnalyzeOptions& options) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    throw Error(ExitCode::bad_data,
                "path '{}' does not exist{}; pass run folders, folders of logs or single logs", shown(path),
                error && status.type() == fs::file_type::none ? fmt::format(" ({})", error.message()) : "");
  const std::size_t taken = collection.taken.size(), met_again = collection.met_again;
  const std::size_t bad = collection.loaded.bad.size();
  if (!fs::is_directory(status)) {
    if (fs::is_regular_file(status) && path.extension() != ".json")
      add_logs(collection, path, options);
    else
      add_result(collection, path, path);
  } else if (fs::exists(path / kResultFile, error)) {
    add_result(collection, path / kResultFile, path);
  } else if (is_sweep(path)) {  // whose logs tell of its runs once more
    add_own_entries(collection, path / "runs", entries_of(path / "runs"), options);
  } else {
    add_folder(collection, path, options);
  }
  const bool only_again = collection.met_again > met_again && !collection.taken.empty();
  if (collection.taken.size() > taken || only_again) return;
  const std::vector<Note>& left_out = collection.loaded.bad;
  if (left_out.size() == bad + 1 && left_out[bad].subject == shown(path))
    throw Error(ExitCode::bad_data, "cannot use '{}': {}", shown(path), left_out[bad].text);
  throw Error(ExitCode::bad_data, "'{}' holds nothing usable{}", shown(path),
              left_out.size() == bad ? "; pass a folder with finished runs or logs"
                                     : fmt::format(" ({} left out); {}: {}", left_out.size() - bad,
                                                   left_out[bad].subject, left_out[bad].text));
}

LoadedSamples in_order(LoadedSamples loaded) {
  const auto order = [](const Sample& sample) {
    const Configuration& c = sample.configuration;
    return std::make_tuple(c.model, c.precision, c.batch_per_device, c.head, c.devices(), c.nodes,
                           c.framework, c.settings);
  };
  std::ranges::stable_sort(loaded.samples, {}, order);
  for (Sample& sample : loaded.samples) std::ranges::stable_sort(sample.runs, {}, &Measurement::origin);
  return loaded;
}

}  // namespace

LoadedSamples load_samples(const std::vector<std::string>& paths, const AnalyzeOptions& options) {
  Collection collection;
  for (const std::string& path : paths) add_path(collection, path, options);
  return in_order(std::move(collection.loaded));
}

}  // namespace plumb
