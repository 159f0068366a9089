// Communicator over NCCL: collectives on device buffers, enqueued on the device's communication lane.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/job.h"

namespace plumb {

// Empty if this build has NCCL, else the reason, to append to a message.
std::string why_no_nccl();

// The version of the NCCL that is loaded, "2.28.3"; empty in a build without.
std::string nccl_version();

// One communicator for the whole job. The process must have selected its device. `queue`: the cudaStream_t of
// the communication lane (Device::queue). start() may be captured; progress() checks for asynchronous errors.
// `shares_gpu`: some ranks of the job use the same GPU; sets the variables of distinct_gpus.h that the
// environment lacks. Destroy before `job` and after captured graphs that contain its calls. Throws
// Error(unavailable) in a build without NCCL, Error(peer_lost) with NCCL's message if NCCL fails. Creation is
// collective, as Job::together. A later failure is known to this rank only, which aborts pending operations.
std::unique_ptr<Communicator> make_nccl_communicator(const Job& job, void* queue, bool shares_gpu);

}  // namespace plumb
