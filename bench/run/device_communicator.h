// The communicator of a device, as --comm names it: for training and for bench_allreduce.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/job.h"
#include "kernels/device.h"

namespace plumb {

// `comm`: "nccl" or "mpi"; MPI carries a GPU's buffers through page-locked memory. Collective; fails as
// make_nccl_communicator() does. Destroy before `device` and `job`. Collectives that the host carries are
// recorded on the job's board under the names of their buffers.
std::unique_ptr<Communicator> make_communicator(const Job& job, const std::string& comm, Device& device,
                                                const Program& program);

}  // namespace plumb
