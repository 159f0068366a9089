// Rank and job size by the launcher's environment, before MPI is initialised.
#pragma once

#include <functional>

namespace plumb {

// This process's rank, and how many processes the launcher started. {0, 1} outside a launcher.
struct LaunchedAs {
  int rank = 0;
  int size = 1;
};

// Looks an environment variable up, as std::getenv does: null if it is not set.
using Environment = std::function<const char*(const char* name)>;

// Reads what Open MPI's mpirun (OMPI_COMM_WORLD_RANK, _SIZE), PMI launchers as MPICH's mpiexec (PMI_RANK,
// PMI_SIZE), PMIx (PMIX_RANK, with the size from Slurm) and srun (SLURM_PROCID, SLURM_STEP_NUM_TASKS or
// SLURM_NTASKS) set, in this order. Slurm's count only inside a step that srun made: a plain sbatch script or
// salloc shell has SLURM_PROCID and SLURM_NTASKS too, though only one process was started.
LaunchedAs launched_as(const Environment& environment);
LaunchedAs launched_as();  // from this process's environment

}  // namespace plumb
