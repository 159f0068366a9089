// Communicator over MPI's non-blocking collectives, for buffers in host memory.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/job.h"

namespace plumb {

// f32 uses MPI_FLOAT; f16 is summed by an MPI operation of our own, element by element in fp32, rounded to nearest.
std::unique_ptr<Communicator> make_mpi_communicator(const Job& job);

}  // namespace plumb
