// The bench program and the launchers of fake/, and sweeps of them, started like a user would.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "tests/scratch_folder.h"

namespace plumb {

struct EndedSweep {
  int code = -1;  // 128 + n after signal n
  std::string output;
  std::vector<std::string> messages;  // lines of stderr
};

// A folder with mpirun, bench_resnet50 and sweep.toml. The program writes four log lines and a result.json;
// it refuses a log that exists, as the real one does. It obeys these files beside it:
//   pause      seconds that it takes, twice: before its log has its name and after it
//   fail_1n2g  it ends with code 71 for that case, and takes a letter of the file off: none are left, it
//   works
//   interrupted  once, it ends with code 143 as a run that a signal interrupted; the file goes
class FakePrograms {
 public:
  // `keys`: of [sweep]; `devices`: "[1, 2]".
  explicit FakePrograms(const std::string& keys = "repetitions = 3", const std::string& devices = "[1, 2]");

  const ScratchFolder& folder() const { return scratch_; }
  std::string path(const std::string& name) const { return scratch_.path() + "/" + name; }
  void write_sweep(const std::string& keys, const std::string& devices) const;
  // Over hosts, which launch/run hands to this mpirun.
  void write_hosts_sweep(const std::string& hosts, const std::string& cases) const;
  void set(const std::string& file, const std::string& text) const { scratch_.write(file, text); }

  // "plumbline sweep sweep.toml --output <out> <arguments>"; start() doesn't wait.
  EndedSweep sweep(const std::string& out, const std::string& arguments = "") const;
  pid_t start(const std::string& out, const std::string& arguments = "") const;
  EndedSweep wait(pid_t sweep) const;

  // Logs with their texts, and run folders: a sweep's results.
  std::set<std::string> results(const std::string& out) const;
  // Live processes that work in this folder.
  int processes() const;

 private:
  void copy_of(const std::string& fake, const std::string& name) const;

  ScratchFolder scratch_;
};

}  // namespace plumb
