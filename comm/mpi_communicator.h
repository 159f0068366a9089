// Communicator over MPI's non-blocking collectives, for buffers in host memory.
#pragma once

#include <cstddef>
#include <memory>

#include "comm/communicator.h"
#include "comm/job.h"

namespace plumb {

struct MpiCommunicatorOptions {
  std::size_t elements_per_call = std::size_t{1}
                                  << 30;  // MPI counts are ints: longer buffers take several calls
};

// Sums of f32 use MPI_FLOAT; f16 and bf16 are summed by MPI operations of our own, element by element in
// fp32, rounded to nearest even. Moves on only inside progress() and wait(): there is no thread. Must go
// before `job` does; collectives that are under way then are given up.
std::unique_ptr<Communicator> make_mpi_communicator(const Job& job,
                                                    const MpiCommunicatorOptions& options = {});

}  // namespace plumb
