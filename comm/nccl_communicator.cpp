#include <nccl.h>

#include <cstdlib>
#include <source_location>
#include <span>
#include <type_traits>

#include "base/error.h"
#include "comm/communicator.h"
#include "comm/distinct_gpus.h"

namespace plumb {
namespace {

Error nccl_error(ncclResult_t result, ncclComm_t communicator, const std::source_location& where) {
  const char* last = ncclGetLastError(communicator);
  const std::string detail = last && *last ? std::string("; ") + last : "";
  return Error(
      ExitCode::peer_lost,
      "NCCL failed: {} (seen in {}, {}{}); see whether every other rank still runs, unset the NCCL_ "
      "variables that you set, such as NCCL_HOSTID, and run again with NCCL_DEBUG=INFO for what NCCL "
      "saw, or with --comm mpi",
      ncclGetErrorString(result), where.function_name(), place_of(where), detail);
}

// `communicator` is null before creation.
void check(ncclResult_t result, ncclComm_t communicator,
           const std::source_location& where = std::source_location::current()) {
  if (result != ncclSuccess) throw nccl_error(result, communicator, where);
}

int version_code() {
  int version = 0;  // 22803: 2.28.3 (nccl.h)
  return ncclGetVersion(&version) == ncclSuccess ? version : 0;
}

// To be called before ncclGetUniqueId, which is the first to read variables. A variable that the user has set
// stays.
void set_variables_for_shared_gpu(const Job& job) {
  for (const auto& [name, value] : nccl_variables_on_shared_gpu(job.rank(), job.nodes(), version_code()))
    ::setenv(name.c_str(), value.c_str(), 0);
}

ncclUniqueId spread_id(const Job& job) {
  ncclUniqueId id{};
  job.together([&] {
    if (job.rank() == 0) check(ncclGetUniqueId(&id), nullptr);
  });
  job.broadcast(std::as_writable_bytes(std::span(id.internal)));
  return id;
}

// Destroy waits for pending operations, which never end if a rank is lost; abort doesn't wait.
struct CommunicatorDeleter {
  bool all_are_there = false;
  void operator()(ncclComm_t communicator) const {
    if (all_are_there) {
      ncclCommDestroy(communicator);
    } else {
      ncclCommAbort(communicator);
    }
  }
};
using CommunicatorOwner = std::unique_ptr<std::remove_pointer_t<ncclComm_t>, CommunicatorDeleter>;

// Blocking mode: calls need no polling, and graphs can capture them. Init hangs if a rank is missing, like
// any collective.
ncclComm_t join(const Job& job, const ncclUniqueId& id) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  ncclComm_t communicator = nullptr;
  check(ncclCommInitRankConfig(&communicator, job.size(), id, job.rank(), &config), nullptr);
  return communicator;
}

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::f16:
      return ncclFloat16;
    case DType::bf16:
      return ncclBfloat16;
    case DType::i32:
      return ncclInt32;
    case DType::i64:
      return ncclInt64;
    case DType::u8:
      break;
  }
  return ncclUint8;
}

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(const Job& job, cudaStream_t stream)
      : rank_(static_cast<std::size_t>(job.rank())), size_(job.size()), stream_(stream) {
    const ncclUniqueId id = spread_id(job);
    job.together([&] { communicator_.reset(join(job, id)); });
    communicator_.get_deleter().all_are_there = true;
  }

  std::string name() const override { return "nccl"; }
  int size() const override { return size_; }
  bool enqueues() const override { return true; }

  Ticket start(const Collective& collective, std::byte* data) override {
    check_alive(enqueue(collective, data));
    return next_ticket_++;
  }

  void progress() override {
    ncclResult_t state = ncclSuccess;
    check_alive(ncclCommGetAsyncError(communicator_.get(), &state));
    check_alive(state);
  }

  bool done(Ticket) const override { return true; }
  void wait(Ticket) override {}

 private:
  // NCCL's in-place calls take a rank's part at its offset in the whole buffer.
  ncclResult_t enqueue(const Collective& collective, std::byte* data) {
    const ncclDataType_t type = type_of(collective.dtype);
    const std::size_t part = collective.elements / static_cast<std::size_t>(size_);
    std::byte* const mine = data + rank_ * part * bytes_of(collective.dtype);
    switch (collective.kind) {
      case Collective::Kind::allreduce_sum:
        return ncclAllReduce(data, data, collective.elements, type, ncclSum, communicator_.get(), stream_);
      case Collective::Kind::allreduce_max:
        return ncclAllReduce(data, data, collective.elements, type, ncclMax, communicator_.get(), stream_);
      case Collective::Kind::allgather:
        return ncclAllGather(mine, data, part, type, communicator_.get(), stream_);
      case Collective::Kind::reduce_scatter_sum:
        return ncclReduceScatter(data, mine, part, type, ncclSum, communicator_.get(), stream_);
      case Collective::Kind::broadcast:
        return ncclBroadcast(data, data, collective.elements, type, 0, communicator_.get(), stream_);
    }
    return ncclInvalidArgument;
  }

  void check_alive(ncclResult_t result, const std::source_location& where = std::source_location::current()) {
    if (result == ncclSuccess) return;
    communicator_.get_deleter().all_are_there = false;
    throw nccl_error(result, communicator_.get(), where);
  }

  std::size_t rank_ = 0;
  int size_ = 1;
  cudaStream_t stream_ = nullptr;
  CommunicatorOwner communicator_;
  Ticket next_ticket_ = 0;
};

}  // namespace

std::string why_no_nccl() {
  return "";
}

std::string nccl_version() {
  const int version = version_code();
  return version > 0 ? fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100) : "";
}

std::unique_ptr<Communicator> make_nccl_communicator(const Job& job, void* queue, bool shares_gpu) {
  if (shares_gpu) set_variables_for_shared_gpu(job);
  return std::make_unique<NcclCommunicator>(job, static_cast<cudaStream_t>(queue));
}

}  // namespace plumb
