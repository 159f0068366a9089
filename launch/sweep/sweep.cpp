#include "launch/sweep/sweep.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/paths.h"
#include "base/process/side_by_side.h"
#include "base/whole_file.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    throw Error(ExitCode::io_error, "cannot create folder {}: {}; make room or pass another --output",
                path.string(), error.message());
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error)
    throw Error(ExitCode::io_error, "cannot remove {}: {}; remove it, then pass --resume", path.string(),
                error.message());
}

void move_tree(const fs::path& from, const fs::path& to) {
  make_folder(to.parent_path());
  std::error_code error;
  fs::rename(from, to, error);
  if (error)
    throw Error(ExitCode::io_error, "cannot move {} to {}: {}; make room, then pass --resume", from.string(),
                to.string(), error.message());
}

// All logs of a run, finished or not, in Plumbline's layout and in the layouts of other dialects beside it.
std::vector<fs::path> logs_of(const SweepPlan& plan, const SweepFolder& folder, const SweepRun& run) {
  const fs::path log = folder.log(plan, run);
  std::vector<fs::path> found;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder.logs(plan.groups[run.group]), error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const fs::path& path = entry->path();
    const std::string name = path.filename(), stem = log.filename();
    if ((name == stem || name == stem + ".part") && path.parent_path().filename() == run.case_name())
      found.push_back(path);
  }
  return found;
}

// The only folder that an attempt left in its work folder and that has a result; empty if there is none.
fs::path result_folder(const fs::path& work) {
  std::error_code error;
  for (const fs::path& entry : visible_entries(work, error))
    if (fs::exists(entry / "result.json", error)) return entry;
  return {};
}

// The first attempt of a run in this folder that left no output yet.
int next_attempt(const SweepFolder& folder, const SweepRun& run) {
  std::error_code error;
  int attempt = 1;
  while (fs::exists(folder.output(run, attempt), error)) ++attempt;
  return attempt;
}

// How a run went since this program began.
struct RunState {
  bool done = false;
  int failures = 0, code = 0;
  std::string reason;
};

class Sweep {
 public:
  Sweep(const SweepPlan& plan, const SweepFolder& folder, const SweepListener& listener)
      : plan_(plan), folder_(folder), listener_(listener), states_(plan.runs.size()) {}

  SweepOutcome run() {
    for (const char* name : {"logs", "runs", "output"}) make_folder(folder_.path / name);
    SweepOutcome outcome{.total = plan_.runs.size()};
    for (std::size_t i = 0; i < plan_.runs.size(); ++i) finished_ += settle(i) ? 1 : 0;
    for (std::size_t i = 0; i < plan_.runs.size(); ++i) {
      const SweepRun& run = plan_.runs[i];
      if (outcome.signal == 0 && !states_[i].done && (!listener_.is_wanted || listener_.is_wanted(run)))
        outcome.signal = attempt_until_done(i);
      const RunState& state = states_[i];
      if (!state.done && state.failures > 0)
        outcome.failed.push_back({run.name, state.reason, state.code, state.failures});
    }
    std::error_code ignored;
    fs::remove(folder_.path / "work", ignored);
    outcome.finished = finished_;
    return outcome;
  }

 private:
  // True if the run is done. Else nothing of it is left.
  bool settle(std::size_t index) {
    const SweepRun& run = plan_.runs[index];
    states_[index].done = is_done(plan_, folder_, run);
    if (states_[index].done) return true;
    std::error_code error;
    if (fs::exists(folder_.runs() / run.name, error) || fs::exists(folder_.log(plan_, run), error))
      listener_.warn(fmt::format("results of {} are not complete; it is measured again", run.name));
    clear(run);
    return false;
  }

  void clear(const SweepRun& run) {
    for (const fs::path& log : logs_of(plan_, folder_, run)) remove_tree(log);
    remove_tree(folder_.runs() / run.name);
    remove_tree(folder_.work(run));
  }

  // Returns the signal that ended it.
  int attempt_until_done(std::size_t index) {
    const RunState& state = states_[index];
    for (int attempt = 0; attempt <= plan_.retries; ++attempt) {
      if (const int signal = attempt_once(index); signal != 0) return signal;
      if (state.done || state.code == static_cast<int>(ExitCode::usage)) break;  // which no retry mends
    }
    return 0;
  }

  int attempt_once(std::size_t index) {
    const SweepRun& run = plan_.runs[index];
    const int attempt = next_attempt(folder_, run);
    make_folder(folder_.work(run));
    const fs::path output = folder_.output(run, attempt);
    const auto idle = [&] { listener_.progress({finished_, plan_.runs.size(), run.name, attempt}); };
    idle();
    ChildEnd end = run_child(command_of(plan_, run, folder_), output, signals_, plan_.timeout_seconds, idle);
    if (end.timed_out) end.code = static_cast<int>(ExitCode::peer_lost);
    if (end.signal != 0) {
      clear(run);
      return end.signal;
    }
    RunState& state = states_[index];
    state.reason = why_failed(run, end, output);
    if (state.reason.empty()) {
      move_tree(result_folder(folder_.work(run)), folder_.runs() / run.name);
      remove_tree(folder_.work(run));
      state.done = true;
      ++finished_;
    } else {
      keep_failed(run, attempt);
      state.code = end.code;
      ++state.failures;
      listener_.warn(fmt::format("{} failed with code {}: {}", run.name, end.code, state.reason));
    }
    return 0;
  }

  // Empty if it didn't fail.
  std::string why_failed(const SweepRun& run, const ChildEnd& end, const fs::path& output) const {
    if (end.timed_out) return "it took longer than the sweep file's timeout_minutes and was ended";
    if (end.code != 0)
      return reason_in(output, plan_.groups[run.group].program, plan_.launcher.hosts.has_value());
    std::error_code error;
    if (!fs::exists(folder_.log(plan_, run), error))
      return "it ended well and left no log " + folder_.log(plan_, run).string();
    if (result_folder(folder_.work(run)).empty()) return "it ended well and left no result.json";
    return "";
  }

  // Out of the way of the next attempt.
  void keep_failed(const SweepRun& run, int attempt) {
    const fs::path kept = folder_.failed(run, attempt);
    remove_tree(kept);
    move_tree(folder_.work(run), kept);
    for (const fs::path& log : logs_of(plan_, folder_, run)) move_tree(log, kept / log.filename());
  }

  const SweepPlan& plan_;
  const SweepFolder& folder_;
  const SweepListener& listener_;
  std::vector<RunState> states_;
  SignalWatch signals_;
  std::size_t finished_ = 0;
};

}  // namespace

std::string reason_in(const fs::path& output, const std::string& program, bool over_hosts) {
  constexpr std::size_t kLongest = 400;
  std::ifstream stream(output);
  std::string first, sentence, noticed;
  bool shows_command = over_hosts;
  for (std::string line; std::getline(stream, line);) {
    line = printable(std::move(line), ' ');
    if (line.find_first_not_of(" -=*") == std::string::npos) continue;
    for (const std::string& speaker : {program + ": ", std::string(kLaunchRun) + ": "})
      if (line.starts_with(speaker)) sentence = line.substr(speaker.size());
    // "mpirun noticed that process rank 1 with PID 7 on node n2 exited on signal 9 (Killed)."
    if (line.find(" noticed that process ") != std::string::npos) noticed = line;
    if (!std::exchange(shows_command, false) && first.empty()) first = line;
  }
  if (!sentence.empty()) return sentence.substr(0, kLongest);
  if (!noticed.empty()) first = noticed;
  return fmt::format("{} (all of it is in {})", first.empty() ? "it said nothing" : first.substr(0, kLongest),
                     output.string());
}

bool is_done(const SweepPlan& plan, const SweepFolder& folder, const SweepRun& run) {
  std::error_code error;
  return fs::exists(folder.log(plan, run), error) &&
         fs::exists(folder.runs() / run.name / "result.json", error);
}

SweepOutcome run_sweep(const SweepPlan& plan, const SweepFolder& folder, const SweepListener& listener) {
  if (path_of_program(plan.launcher.command).empty())
    throw Error(ExitCode::unavailable,
                "launcher '{}' does not exist; install it, or set another 'command' in [launcher]",
                plan.launcher.command);
  return Sweep(plan, folder, listener).run();
}

std::string build_hash(const SweepPlan& plan) {
  std::set<fs::path> programs;
  for (const SweepGroup& group : plan.groups) programs.insert(plan.launcher.programs / group.program);
  std::uint64_t hash = kFnvOffset;
  for (const fs::path& path : programs) {
    if (path_of_program(path).empty())
      throw Error(ExitCode::unavailable,
                  "program {} does not exist; set its folder as 'programs' in [launcher]", path.string());
    hash = fnv1a(read_whole_file(path, {.remedy = "set the folder of the right programs in [launcher]",
                                        .most_bytes = std::uint64_t{1} << 32}),
                 hash);
  }
  return fmt::format("{:016x}", hash);
}

int exit_code_of(const SweepOutcome& outcome) {
  if (outcome.signal != 0) return 128 + outcome.signal;
  if (outcome.failed.empty()) return 0;
  constexpr std::array kDocumented{64, 65, 69, 70, 71, 73, 74, 75, 76};
  const int code = outcome.failed.front().code;
  const bool is_documented = std::ranges::find(kDocumented, code) != kDocumented.end();
  return is_documented || (code > 128 && code < 160) ? code : static_cast<int>(ExitCode::internal);
}

}  // namespace plumb
