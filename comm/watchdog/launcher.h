// The process that started this rank: mpirun, or its daemon on this host.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

namespace plumb {

// This process's parent, if that is Open MPI's or MPICH's mpirun or a daemon of it that serves this job
// alone.
std::optional<pid_t> parent_launcher();

// Sends the launcher SIGKILL if it still runs after `patience`: Open MPI's mpirun and orted wait for ever for
// a host that is lost. Done by a process "plumb-end", which outlives this one until then.
void end_launcher_later(pid_t launcher, std::chrono::seconds patience);

}  // namespace plumb
