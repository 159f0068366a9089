#include "comm/mpi_check.h"

#include <string>

namespace plumb {
namespace {

struct Meaning {
  ExitCode exit_code;
  const char* advice;
};

Meaning meaning_of(int code) {
  int error_class = MPI_ERR_UNKNOWN;
  MPI_Error_class(code, &error_class);
  switch (error_class) {
    case MPI_ERR_NO_MEM:
      return {ExitCode::out_of_memory, "free memory on this host or use fewer ranks"};
    case MPI_ERR_ARG:
    case MPI_ERR_BUFFER:
    case MPI_ERR_COMM:
    case MPI_ERR_COUNT:
    case MPI_ERR_OP:
    case MPI_ERR_RANK:
    case MPI_ERR_REQUEST:
    case MPI_ERR_ROOT:
    case MPI_ERR_TRUNCATE:
    case MPI_ERR_TYPE:
      return {ExitCode::internal, "this is a defect of Plumbline"};
    default:
      return {ExitCode::peer_lost, "see whether every other rank still runs and its host can be reached"};
  }
}

std::string words_of(int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return std::string(text, static_cast<std::size_t>(length));
}

}  // namespace

Error mpi_error(int code, const char* call, const std::source_location& where) {
  const auto [exit_code, advice] = meaning_of(code);
  return Error(exit_code, "{} failed: {} ({}); {}", call, words_of(code), place_of(where), advice);
}

}  // namespace plumb
