// The process that started this rank: mpirun, or its daemon on this host.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace plumb {

// This host's name.
std::string own_host();

struct Launcher {
  pid_t pid = 0;
  std::string name;           // "mpirun", "orted"
  unsigned long started = 0;  // by the system's clock ticks: another process may get the same number
  bool serves_jobs = false;   // one of PRRTE's daemons that prun starts jobs on: it outlives this one

  bool is_gone() const;
  // Whether it kills the other ranks of its host when one fails.
  bool ends_ranks() const;
};

// mpirun and its kin, their daemons, Slurm's slurmstepd: the nearest one that the process descends from.
// Between them may be a shell, a container's runtime or a profiler.
std::optional<Launcher> launcher_of(pid_t process);
std::optional<Launcher> launcher_of_this_process();

struct StartedRank {
  int rank = 0;
  pid_t pid = 0;
  bool stopped = false;
};

// The ranks that it started on this host and that haven't ended, this one included; lowest first. Of one
// behind a shell or the like its own process, if it runs this program.
std::vector<StartedRank> ranks_started_by(const Launcher& launcher);

// Sends the launcher SIGKILL after `patience` unless it has ended, from a process that outlives this one
// until then. Nothing for slurmstepd, which ends by itself and has its job's processes to clean up, nor for a
// daemon that serves jobs. Open MPI's mpirun and orted otherwise wait for ever for a host that is lost.
void end_launcher_later(const Launcher& launcher, std::chrono::seconds patience);

// The same, should this process end before the fence is destroyed, as by SIGKILL: Open MPI's mpirun
// sometimes waits for ever for a lock of a rank that was killed in MPI_Init, when it has ended all others.
class LauncherFence {
 public:
  LauncherFence(const Launcher& launcher, std::chrono::seconds patience);
  ~LauncherFence();
  LauncherFence(const LauncherFence&) = delete;
  LauncherFence& operator=(const LauncherFence&) = delete;

 private:
  int end_ = -1;  // of a socket; the process at its other end waits for a byte, or for this process's end
};

// Asks Slurm to end the step of this process, ranks that are stopped included: srun without
// --kill-on-bad-exit waits for those for ever. Returns once that is asked, after 3 s at most.
void end_slurm_step();

// Sends SIGKILL to a process of this host that runs the same program as this one.
void kill_same_program(pid_t pid);

}  // namespace plumb
