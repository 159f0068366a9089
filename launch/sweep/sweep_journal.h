// The progress of a sweep so far: FOLDER/journal.jsonl, one line of JSON per event, each written by one
// write(2) and never changed. A sweep that was killed at any moment can tell from it what is left to do.
//
//   {"schema": "plumbline.sweep/1", "plan": "…", "build": "…", "file": "x.toml", "toml": "…"}   the first
//   line
//   {"event": "begin", "time": …, "process": …, "host": …}            a sweep takes the folder up
//   {"event": "start", "time": …, "run": …, "attempt": …}
//   {"event": "done", "time": …, "run": …, "attempt": …, "seconds": …}
//   {"event": "failed", "time": …, "run": …, "attempt": …, "seconds": …, "code": …, "reason": …}
//   {"event": "interrupted", "time": …, "run": …, "attempt": …, "signal": …}
//   {"event": "lost", "time": …, "run": …}                            a result that was there is gone
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/output.h"

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

class SweepJournal {
 public:
  // Creates folder and journal, or, with `resume`, goes on with one (there need be none). The folder is this
  // object's alone until it goes; a lock of a process that died counts for nothing. Throws
  // Error(cannot_create) if another sweep is at work in the folder, it holds another sweep, one of another
  // build, one that isn't to be resumed, or something else; Error(bad_data) for a journal that can't be read.
  SweepJournal(const std::filesystem::path& folder, const SweepIdentity& identity, bool resume);

  // A run that the journal doesn't name is not done and has no attempts.
  RunState state(const std::string& run) const;

  // Each writes a line. Throws Error(io_error). started() returns the attempt's number, from 1.
  int started(const std::string& run);
  void done(const std::string& run, double seconds);
  void failed(const std::string& run, double seconds, int code, const std::string& reason);
  void interrupted(const std::string& run, int signal);
  void lost(const std::string& run);

 private:
  void lock();
  void check_header(const std::string& line, const SweepIdentity& identity) const;
  void append(const nlohmann::ordered_json& line);
  void append_event(const char* event, const std::string& run, nlohmann::ordered_json more = {});

  Output out_;
  std::filesystem::path path_;
  UniqueFd file_;
  std::map<std::string, RunState> states_;
};

// The states that a folder's journal tells, for looking only; none if there is no journal. Throws
// Error(bad_data).
std::map<std::string, RunState> read_sweep_states(const std::filesystem::path& folder);

}  // namespace plumb
