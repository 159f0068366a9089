// Programs started as a user starts them, in a folder of their own, and what they leave behind.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/scratch_folder.h"

namespace plumb {

// Exit codes, as README.md documents them.
inline constexpr int kUsage = 64, kBadData = 65, kUnavailable = 69, kInternal = 70, kOutOfMemory = 71,
                     kCannotCreate = 73, kIoError = 74, kVerificationFailed = 76;

struct Ended {
  int exit_code = -1;              // 128 + n after signal n
  std::string output;              // stdout
  std::vector<std::string> lines;  // stderr of the program itself, all ranks; not its launcher's
  std::string launcher_messages;
  std::size_t peak_bytes = 0;  // largest resident set of any process
};

struct Process {
  pid_t pid = 0;
  int rank = 0;
};

class StartedProgram;

// A folder to start programs in. What holds their messages lies outside it.
class Place {
 public:
  Place();

  std::string folder() const { return scratch_.path() + "/work"; }
  std::string file(const std::string& name) const { return folder() + "/" + name; }
  // All files and folders in it, sorted, as relative paths.
  std::vector<std::string> contents() const;
  std::vector<std::string> contents_ending_in(const std::string& end) const;
  // Of the only run folder; null if there is none, or none with a result.
  nlohmann::ordered_json result() const;

  // Shell commands of bench_resnet50, of the same program with a saboteur inside, and of ranks of them.
  std::string bench(const std::string& arguments) const;
  std::string damaged(const std::string& arguments) const;
  static std::string mpirun(int ranks, const std::string& command);

  // `environment`: "NAME=value NAME=value".
  StartedProgram start(const std::string& command, const std::string& environment = "") const;
  Ended run(const std::string& command, const std::string& environment = "") const;

 private:
  friend class StartedProgram;
  std::string wrapper(const std::string& program) const;
  std::string outside(const std::string& name) const { return scratch_.path() + "/" + name; }

  ScratchFolder scratch_;
};

// Ends with everything that it started, at the latest when it goes out of scope.
class StartedProgram {
 public:
  StartedProgram(const Place& place, const std::string& command, const std::string& environment);
  ~StartedProgram();
  StartedProgram(const StartedProgram&) = delete;
  StartedProgram& operator=(const StartedProgram&) = delete;

  bool running();
  // Processes of this start that live, the launcher and shells included; ranks: those of bench_resnet50 or
  // its damaged sister.
  std::vector<Process> processes() const;
  std::vector<Process> ranks() const;
  // Fails the test, and ends everything, if it takes longer than a minute and a half.
  Ended wait();

 private:
  void reap(bool block);
  const Place& place_;
  pid_t shell_ = 0;
  int status_ = -1;
  bool reaped_ = false;
  std::size_t peak_bytes_ = 0;
};

// Small and short: 2 images of 32 pixels.
inline const std::string kSmall = "--image-size 32 --bs 2 --warmup 1 --threads 1 ";

// The program ended with `code` and said one sentence, which holds all `words`, and nothing else.
void expect_one_sentence(const Ended& ended, int code, const std::vector<std::string>& words);
// There is no .log, and result.json says failed for a reason that holds `reason`.
void expect_no_score(const Place& place, const std::string& reason = "");
// Every line is whole and they count up from 0. Returns how many there are.
int expect_whole_lines(const std::string& log);
// False, with a sentence, where this process may not mount.
bool can_mount();

}  // namespace plumb
