// Communicator over MPI, for buffers in host memory: collectives around a ring (comm/ring.h), short ones and
// broadcasts as MPI does them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/job.h"

namespace plumb {

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

// f16 and bf16 sum in fp32 and round to nearest even. Sums are the same in every run and on all ranks.
// Collectives advance only inside start(), progress() and wait(), and are recorded on the job's board. An end
// is recorded at the first progress() or wait() that sees it. Destroy before `job`; pending collectives
// are abandoned then.
std::unique_ptr<Communicator> make_mpi_communicator(const Job& job,
                                                    const MpiCommunicatorOptions& options = {});

}  // namespace plumb
