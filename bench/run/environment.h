// The surroundings of a run: its build and machine (env.json), and how this process shares the CPUs with
// others.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace plumb {

// build_json() with oneDNN, MPI, libjpeg-turbo … as found at run time, if the libraries report their
// versions; with `load` also those that only GPUs need.
nlohmann::ordered_json engine_build_json(bool load = false);
// Lines of name=value, the commit first, for Job::require_same.
std::string build_lines();

// The variables that env.json keeps, by whole names: a prefix could let a secret through. `environment`: as
// ::environ.
std::map<std::string, std::string> recorded_variables(const char* const* environment);

// env.json: the machine of rank 0, {"build", "variables"} of this process, and as "other_hosts" those of
// other hosts. `machines`: every rank's machine_json as text, in rank order.
nlohmann::ordered_json environment_json(const std::vector<std::string>& machines);
// Throws Error(unavailable) if the process may open so few files that MPI_Init fails without saying why.
void require_open_files();

struct ThreadShare {
  int threads = 1;
  std::string remark;  // one sentence if the rank is bound to less than it could have; else empty
};

// The `cpus` of the rank's mask, divided by the ranks on the same host with the same mask (the first ones
// take what is left over), at least 1. `placements`: every rank's "host cpu-list", in rank order.
ThreadShare threads_for_this_rank(const std::vector<std::string>& placements, int rank, int cpus,
                                  int host_cpus, int host_cpus_per_core);

// OpenMP threads that spin for long at a barrier slow a run down badly where others use the same CPUs;
// threads that sleep at once take 50 us to wake, some hundred times per step. If the user has set neither
// OMP_WAIT_POLICY nor GOMP_SPINCOUNT, sets the first to passive and the second (of GCC's runtime) to 3000
// turns, some 50 us, and starts this program anew, as the runtime reads both when the process starts. To be
// called first in main. Figures: results/appendix/cpu.md.
void ensure_short_openmp_waits(char** argv);

}  // namespace plumb
