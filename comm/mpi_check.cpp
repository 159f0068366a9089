#include "comm/mpi_check.h"

namespace plumb {

Error mpi_error(int code, const char* call, const std::source_location& where) {
  int error_class = MPI_ERR_UNKNOWN, length = 0;
  MPI_Error_class(code, &error_class);
  char words[MPI_MAX_ERROR_STRING] = {};
  MPI_Error_string(code, words, &length);
  const bool lacks_memory = error_class == MPI_ERR_NO_MEM;
  return Error(lacks_memory ? ExitCode::out_of_memory : ExitCode::peer_lost, "{} failed: {} ({}); {}", call,
               words, place_of(where),
               lacks_memory ? "free memory on this host or use fewer ranks"
                            : "see whether every other rank still runs and its host can be reached");
}

}  // namespace plumb
