// The process that started this rank: mpirun, its daemon on this host, or srun. Reads rank and job size from
// its environment before MPI is initialized, and ends it after a failure.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace plumb {

// This process's rank and the number of processes started. {0, 1} without a launcher.
struct LaunchedAs {
  int rank = 0;
  int size = 1;
};

// Looks up an environment variable like std::getenv: null if not set.
using Environment = std::function<const char*(const char* name)>;

// By the variables of Open MPI's mpirun, PMI launchers such as MPICH's mpiexec, PMIx (with the size from
// Slurm) and srun, in this order. Slurm's count only inside a step created by srun: a plain sbatch script or
// salloc shell sets them too, with only one process.
LaunchedAs launched_as(const Environment& environment = ::getenv);

// Whether mpirun, MPICH's mpiexec, or srun with PMI or PMIx started this process.
bool has_launcher(const Environment& environment = ::getenv);

// This process's parent, if that is Open MPI's or MPICH's mpirun or a daemon of it that serves this job
// alone.
std::optional<pid_t> parent_launcher();

// Sends the launcher SIGKILL if it still runs after `patience`: Open MPI's mpirun and orted wait for ever for
// a host that is lost. Done by a process "plumb-end", which outlives this one until then.
void end_launcher_later(pid_t launcher, std::chrono::seconds patience);

}  // namespace plumb
