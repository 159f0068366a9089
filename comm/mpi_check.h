// Converts MPI's return codes to errors.
#pragma once

#include <mpi.h>

#include <source_location>

#include "base/error.h"

namespace plumb {

// The error for a code other than MPI_SUCCESS: out_of_memory if it lacks memory, else peer_lost. The message
// gives `call`'s name, MPI's message and the source location.
Error mpi_error(int code, const char* call, const std::source_location& where);

inline void check(int code, const char* call,
                  const std::source_location& where = std::source_location::current()) {
  if (code != MPI_SUCCESS) throw mpi_error(code, call, where);
}

// Whether the request has ended; MPI then sets it to MPI_REQUEST_NULL. Throws mpi_error().
inline bool has_ended(MPI_Request& request) {
  int ended = 0;
  check(MPI_Test(&request, &ended, MPI_STATUS_IGNORE), "MPI_Test");
  return ended != 0;
}

}  // namespace plumb
