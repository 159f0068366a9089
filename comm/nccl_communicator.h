// Communicator over NCCL: collectives on device buffers, enqueued on the device's communication lane.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/job.h"

namespace plumb {

// Whether this build has NCCL; empty, or why not, as the rest of a sentence.
std::string why_no_nccl();

// One communicator for the whole job, its id spread by MPI; this process' device must be chosen already.
// `queue`: the cudaStream_t of the communication lane (Device::queue). start() enqueues there and may be
// captured; progress() asks for errors that came up meanwhile. Must go before `job` and after the captured
// graphs that hold its calls. Throws Error(unavailable) in a build without NCCL, Error(peer_lost) with NCCL's
// own words when NCCL fails; making it is a collective, and if it fails all ranks throw as Job::together has
// it. A later failure is known to this rank only, which then gives up pending operations.
std::unique_ptr<Communicator> make_nccl_communicator(const Job& job, void* queue);

}  // namespace plumb
