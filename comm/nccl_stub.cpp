// Replaces the NCCL communicator in a build without CUDA or NCCL.
#include "base/error.h"
#include "comm/communicator.h"

namespace plumb {

std::string why_no_nccl() {
  return "this program is built without NCCL";
}

std::string nccl_version() {
  return "";
}

std::unique_ptr<Communicator> make_nccl_communicator(const Job&, void*, bool) {
  throw Error(ExitCode::unavailable, "--comm nccl is not available, {}; pass --comm mpi", why_no_nccl());
}

}  // namespace plumb
