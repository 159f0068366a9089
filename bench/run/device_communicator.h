// The communicator of a device, as --comm names it: for training and for bench_allreduce.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/job.h"
#include "kernels/device.h"

namespace plumb {

// `comm`: "nccl" or "mpi"; MPI carries a GPU's buffers through pinned memory. `shares_gpu`: some ranks of the
// job use the same GPU. Collective; fails as make_nccl_communicator() does. Destroy before `device` and
// `job`. Collectives that the host carries are recorded on the job's board by the names of their buffers.
std::unique_ptr<Communicator> make_communicator(const Job& job, const std::string& comm, bool shares_gpu,
                                                Device& device, const Program& program);

// Until all that was enqueued on the lane so far has run. Throws the communicator's Error(peer_lost), if
// there is one: NCCL's collectives wait for a lost rank without end.
void wait_for_lane(Device& device, Communicator* communicator, Lane lane);

}  // namespace plumb
