// The runs of a sweep that a TOML file describes, in the order in which they are started. Pure data.
// The keys of such a file: docs/how-to/launching.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace plumb {

// The script that starts runs on hosts.
inline constexpr const char* kLaunchRun = "launch/run";

// With neither list nor file: the hosts of the Slurm job.
struct SweepHosts {
  std::string list;            // "node[1-4]", as launch/run -H takes it
  std::filesystem::path file;  // Open MPI's host file
  std::string via;             // "mpirun", "srun"; empty: as launch/run chooses
};

struct SweepLauncher {
  std::string command = "mpirun";
  std::vector<std::string> arguments = {"--bind-to", "none"};
  std::filesystem::path programs;   // empty: not named in the file
  std::optional<SweepHosts> hosts;  // then `command` is launch/run, the only one that reads host names
};

struct RunLength {
  std::int64_t iterations = 0, warmup = 0;
};

// The runs of one configuration but for the number of devices: their logs share a folder and a table.
struct SweepGroup {
  std::string name;  // "resnet50_b128_fp16", with the case's name in front: "mpi_resnet50_b128_fp16"
  std::string program, model, precision;
  std::int64_t batch_per_device = 0;
  RunLength length;
  std::vector<std::string> options;  // of the program, but for those that say where results go
};

struct SweepRun {
  std::string name;       // "resnet50_b128_fp16_1n8g_3": no other run of the sweep has it
  std::size_t group = 0;  // index
  int nodes = 1, devices_per_node = 1;
  int repetition = 1;

  int devices() const { return nodes * devices_per_node; }
  std::string case_name() const { return fmt::format("{}n{}g", nodes, devices_per_node); }
};

struct SweepPlan {
  int repetitions = 7;
  std::uint64_t seed = 0;
  int retries = 1;
  double timeout_seconds = 4 * 3600.0;  // 0: none
  SweepLauncher launcher;
  std::vector<SweepGroup> groups;  // as the file has them
  // Repetition by repetition, each with every case once in an order of its own: drift meets all cases alike.
  std::vector<SweepRun> runs;
};

// Asks the program (name or path) how long a run with these arguments is. Throws Error(usage) for arguments
// that the program would refuse.
using CheckOptions =
    std::function<RunLength(const std::string& program, const std::vector<std::string>& arguments)>;

// `file`: its name in messages, and what relative `programs` and `hostfile` are relative to. Throws
// Error(bad_data) that names the file and the key or case.
SweepPlan read_sweep_plan(std::string_view text, const std::string& file, const CheckOptions& check);

// Where the results of a sweep lie.
struct SweepFolder {
  std::filesystem::path path;

  std::filesystem::path logs(const SweepGroup& group) const { return path / "logs" / group.name; }
  std::filesystem::path runs() const { return path / "runs"; }  // one folder per finished run
  std::filesystem::path work(const SweepRun& run) const { return path / "work" / run.name; }
  std::filesystem::path failed(const SweepRun& run, int attempt) const;  // what a failed attempt left
  std::filesystem::path output(const SweepRun& run, int attempt) const;  // what it said
  std::filesystem::path log(const SweepPlan& plan, const SweepRun& run) const;
};

// What launch/run is given in front of the program, with itself.
std::vector<std::string> hosts_words(const SweepLauncher& launcher, int nodes, int devices_per_node);
// The command of a run, as words.
std::vector<std::string> command_of(const SweepPlan& plan, const SweepRun& run, const SweepFolder& folder);
// Quoted for a shell.
std::string shell_text(const std::vector<std::string>& command);

// Differs for plans that measure something else, in another order or through another launcher.
std::string plan_hash(const SweepPlan& plan);

}  // namespace plumb
