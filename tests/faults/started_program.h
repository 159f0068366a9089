// Programs started like a user would, each in its own folder, and their outputs.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/scratch_folder.h"

namespace plumb {

// Exit codes, as README.md documents them.
inline constexpr int kUsage = 64, kBadData = 65, kUnavailable = 69, kInternal = 70, kOutOfMemory = 71,
                     kCannotCreate = 73, kIoError = 74, kPeerLost = 75, kVerificationFailed = 76,
                     kKilled = 128 + SIGKILL;

struct Ended {
  int exit_code = -1;              // 128 + n after signal n
  std::string output;              // stdout
  std::vector<std::string> lines;  // stderr of the program itself, all ranks, without the launcher's
  std::string launcher_messages;
  std::size_t peak_bytes = 0;  // largest resident set of any process
};

struct Process {
  pid_t pid = 0;
  int rank = 0;
};

class StartedProgram;

// A folder to start programs in. Their messages are stored outside it.
class Place {
 public:
  Place();

  std::string folder() const { return scratch_.path() + "/work"; }
  std::string file(const std::string& name) const { return folder() + "/" + name; }
  // All files and folders in it, sorted, as relative paths.
  std::vector<std::string> contents() const;
  std::vector<std::string> contents_ending_in(const std::string& end) const;
  // The only run folder's; null without a folder or result.
  nlohmann::ordered_json result() const;

  // Shell commands: bench_arcface, the same with fault injection, bench_resnet50, bench_allreduce, ranks of
  // any, plumbline and make_rec.
  std::string bench(const std::string& arguments) const;
  std::string damaged(const std::string& arguments) const;
  std::string resnet50(const std::string& arguments) const;
  std::string allreduce(const std::string& arguments) const;
  static std::string mpirun(int ranks, const std::string& command);
  std::string plumbline(const std::string& arguments) const;
  std::string make_rec(const std::string& arguments) const;

  // `environment`: "NAME=value NAME=value".
  StartedProgram start(const std::string& command, const std::string& environment = "") const;
  Ended run(const std::string& command, const std::string& environment = "") const;

 private:
  friend class StartedProgram;
  std::string wrapper(const std::string& program) const;
  std::string outside(const std::string& name) const { return scratch_.path() + "/" + name; }

  ScratchFolder scratch_;
};

// Ends everything it started, at the latest on destruction.
class StartedProgram {
 public:
  StartedProgram(const Place& place, const std::string& command, const std::string& environment);
  ~StartedProgram();
  StartedProgram(const StartedProgram&) = delete;
  StartedProgram& operator=(const StartedProgram&) = delete;

  bool running();
  // Live processes of this start, including launcher and shells; ranks: those of the programs above.
  std::vector<Process> processes() const;
  std::vector<Process> ranks() const;
  std::vector<Process> launchers() const;  // mpirun
  void send(int rank, int signal) const;
  // Fails the test, and ends everything, after a minute and a half.
  Ended wait();

 private:
  std::vector<Process> running_one_of(const std::vector<std::string>& programs) const;
  void reap(bool block);
  const Place& place_;
  pid_t shell_ = 0;
  int status_ = -1;
  bool reaped_ = false;
  std::size_t peak_bytes_ = 0;
};

// Small and short, for bench: a network of 4 MB, which starts and ends in a third of ResNet-50's time.
inline const std::string kTiny = "--backbone y1 --head dp --classes 100 --warmup 1 --threads 1 ";
inline const std::string kOne = kTiny + "--bs 1 ", kSmall = kTiny + "--bs 2 ";
// For resnet50: 2 images of 32 pixels.
inline const std::string kSmallImages = "--image-size 32 --bs 2 --warmup 1 --threads 1 ";

// Within a minute no process of it is left.
void expect_all_gone(const StartedProgram& program);
// The exit code is that of a lost rank, or of a mpirun that took over 5 s and was killed: mpirun's is that of
// the first process that it sees end.
void expect_peer_lost(const Ended& ended);
// One line, or up to `most` of several ranks, is of the watchdog, and has all `words`.
void expect_named(const Ended& ended, const std::vector<std::string>& words, std::size_t most = 1);
// The program exited with `code` and exactly one sentence, which begins with `program` and has all `words`;
// ranks after 0 may repeat it.
void expect_one_sentence(const Ended& ended, int code, const std::vector<std::string>& words,
                         const std::string& program = "bench_");
// There is no .log, and result.json says failed for a reason that contains `reason`.
void expect_no_score(const Place& place, const std::string& reason = "");
// Lines in all logs of runs that are under way.
int log_lines_so_far(const Place& place);
// Waits for the first iterations of the window, or the program's end.
void wait_for_lines(const Place& place, StartedProgram& program);
// Every line is whole, and they count up from 0. Returns the number of lines.
int expect_whole_lines(const std::string& log);
// A command for the shell that runs `script` where it may mount what nobody else sees.
std::string with_own_mounts(const std::string& script);
// False, with a message, if this process may not mount.
bool can_mount();
// Three runs at about this speed in a folder, as a bench program writes them, without a run.
void write_example_runs(const Place& place, const std::string& folder, double images_per_second);

}  // namespace plumb
