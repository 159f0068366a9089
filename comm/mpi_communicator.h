// Communicator over MPI's non-blocking collectives, for buffers in host memory.
#pragma once

#include <cstddef>
#include <memory>

#include "comm/communicator.h"
#include "comm/job.h"

namespace plumb {

struct MpiCommunicatorOptions {
  // MPI counts are ints: longer buffers take several calls.
  std::size_t elements_per_call = std::size_t{1} << 30;
};

// f32 sums use MPI_FLOAT; f16 and bf16 use custom MPI operations that sum in fp32 and round to nearest even.
// Collectives advance only inside progress() and wait(): there is no progress thread. Destroy before `job`;
// pending collectives are abandoned then.
std::unique_ptr<Communicator> make_mpi_communicator(const Job& job,
                                                    const MpiCommunicatorOptions& options = {});

}  // namespace plumb
