// The progress of a sweep so far: FOLDER/journal.jsonl, one line of JSON per event, each written by one
// write(2) and never changed. The first line is a SweepHeader, every other one a SweepEvent.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/output.h"
#include "results/record/fields.h"

namespace plumb {

struct RunState {
  bool done = false;
  int attempts = 0;    // started, in all sweeps of the folder
  int failures = 0;    // since it was last done
  double seconds = 0;  // of the last attempt that ended
  int code = 0;        // of the last failure, with its reason
  std::string reason;
};

struct SweepIdentity {
  std::uint64_t plan = 0;   // plan_hash()
  std::uint64_t build = 0;  // hash over the programs: runs of two builds are not one measurement
  std::string file, toml;   // for people
};

// begin: a sweep uses the folder from here on. lost: a result that was there is gone.
struct SweepEvent {
  std::string event, time;  // begin, start, done, failed, interrupted or lost; when, in UTC
  std::string run;          // empty: begin
  std::optional<std::int64_t> process;
  std::optional<std::string> host, reason;
  std::optional<int> attempt, code, signal;
  std::optional<double> seconds;

  static void fields(auto& self, auto&& each) {
    each("event", self.event, Field{"begin, start, done, failed, interrupted or lost"});
    each("time", self.time, Field{"UTC"});
    each("run", self.run, Field{.about = "a run's name; not of begin", .written = !self.run.empty()});
    each("process", self.process), each("host", self.host);
    each("attempt", self.attempt, Field{"from 1"}), each("seconds", self.seconds);
    each("code", self.code, Field{"exit code"}), each("reason", self.reason);
    each("signal", self.signal, Field{"that ended the sweep"});
  }
  void check(const ObjectReader& reader) const;
};

class SweepJournal {
 public:
  // Creates folder and journal, or, with `resume`, goes on with one (there need be none). The folder is this
  // object's alone until it goes. Throws Error(cannot_create) if another sweep is at work in the folder, or
  // it holds anything but this sweep to be resumed; Error(bad_data) for a journal that can't be read.
  SweepJournal(const std::filesystem::path& folder, const SweepIdentity& identity, bool resume);

  // A run that the journal doesn't name is not done and has no attempts.
  RunState state(const std::string& run) const;

  // Writes a line, with the time. Throws Error(io_error).
  void add(SweepEvent event);

 private:
  void lock();
  void check_header(const std::string& line, const SweepIdentity& identity) const;
  void append(const nlohmann::ordered_json& line);

  Output out_;
  std::filesystem::path path_;
  UniqueFd file_;
  std::map<std::string, RunState> states_;
};

// For looking only; nothing if there is no journal. Throws Error(bad_data).
std::map<std::string, RunState> read_sweep_states(const std::filesystem::path& folder);

// The schema of one line.
nlohmann::ordered_json sweep_schema();

}  // namespace plumb
