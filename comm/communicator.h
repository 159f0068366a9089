// Interface for training's collectives: a Collective from the Program, a buffer, and a ticket to wait on.
// Implementations: MPI (host buffers), NCCL (device buffers), and device buffers staged through host memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "kernels/program/program.h"

namespace plumb {

class HostStaging;
class Job;

class Communicator {
 public:
  using Ticket = std::size_t;
  virtual ~Communicator() = default;

  virtual std::string name() const = 0;  // "mpi", "nccl"
  virtual int size() const = 0;
  // Whether start() only enqueues on the device's communication lane. Then collectives are ordered like any
  // instruction and may be captured, wait() does nothing and done() is always true. Otherwise the host runs
  // them.
  virtual bool enqueues() const { return false; }

  // Starts the collective on `data` (in place) without waiting; `data` must stay untouched until it ends.
  // All ranks start the same collectives in the same order. allgather and broadcast take any dtype, sums f32,
  // f16 and bf16, maxima f32; ranks have equal parts.
  virtual Ticket start(const Collective& collective, std::byte* data) = 0;
  // Advances started collectives; throws Error(peer_lost) if one failed. Called between compute instructions,
  // or once per iteration if enqueues().
  virtual void progress() = 0;
  // Whether the collective had ended at the last progress() call.
  virtual bool done(Ticket ticket) const = 0;
  // Returns when the collective has ended.
  virtual void wait(Ticket ticket) = 0;
};

struct MpiCommunicatorOptions {
  // Allreduces and allgathers of fewer bytes are MPI's own: their latency counts, not their bytes. Over two
  // hosts at 1 Gbit/s an allreduce of 16 KiB took 102 us in log2(n) steps and 147 us around the ring, one of
  // 64 KiB 526 and 218 us.
  std::size_t ring_from_bytes = std::size_t{64} << 10;
  // Longest message of the ring, at least 8; 0 chooses for the job.
  std::size_t message_bytes = 0;
  // Names of buffers by BufferId, for the job's board. Collectives in other buffers are recorded without one.
  std::vector<std::string> buffer_names = {};
};

// Over MPI, for buffers in host memory: collectives around a ring (comm/ring.h), short ones and broadcasts as
// MPI does them. f16 and bf16 sum in fp32 and round to nearest even. Sums are the same in every run and on
// all ranks. Collectives advance only inside start(), progress() and wait(), and are recorded on the job's
// board. An end is recorded at the first progress() or wait() that sees it. Destroy before `job`; pending
// collectives are abandoned then.
std::unique_ptr<Communicator> make_mpi_communicator(const Job& job,
                                                    const MpiCommunicatorOptions& options = {});

// For buffers in device memory: copies each collective's data to page-locked host memory, lets `carrier` run
// it there in start order, and copies back. All copies run on the communication lane, in order. wait(ticket)
// returns once the copy back is enqueued on the lane. Host memory is allocated at the first reduction of a
// device buffer and kept for it. Destroy after the lane is idle and before the device; pending collectives
// are abandoned then.
std::unique_ptr<Communicator> make_staged_communicator(std::unique_ptr<Communicator> carrier,
                                                       HostStaging& staging);

// Empty if this build has NCCL, else the reason, to append to a message.
std::string why_no_nccl();

// The version of the NCCL that is loaded, "2.28.3"; empty in a build without.
std::string nccl_version();

// Over NCCL: collectives on device buffers, enqueued on the device's communication lane. One communicator for
// the whole job. The process must have selected its device. `queue`: the cudaStream_t of the communication
// lane (Device::queue). start() may be captured; progress() checks for asynchronous errors. `shares_gpu`:
// some ranks of the job use the same GPU; sets the variables of distinct_gpus.h that the environment lacks.
// Destroy before `job` and after captured graphs that contain its calls. Throws Error(unavailable) in a build
// without NCCL, Error(peer_lost) with NCCL's message if NCCL fails. Creation is collective, as Job::together.
// A later failure is known to this rank only, which aborts pending operations.
std::unique_ptr<Communicator> make_nccl_communicator(const Job& job, void* queue, bool shares_gpu);

}  // namespace plumb
