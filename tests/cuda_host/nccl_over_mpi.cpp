// A stand-in for NCCL on emulated GPUs: carries the calls of comm/nccl_communicator.cpp over MPI. Undefined
// behavior and hangs of NCCL are errors here: mismatched collectives between ranks, memory of another GPU, a
// stream that waits for the default stream, a second stream, use after destruction.
//
// EMULATED_NCCL_FAIL=rank:call makes ncclCommGetAsyncError of that rank return ncclRemoteError from its
// call-th call on, counted from 0; EMULATED_NCCL_FAIL_INIT=rank makes that rank's init fail.
// EMULATED_NCCL_STALL=rank:execution: that rank's collectives from that one on, counted from 0, never end,
// and a second later ncclCommGetAsyncError says so, as NCCL does after a network error; EMULATED_NCCL_HANG,
// the same without that error. EMULATED_NCCL_WRONG_SUMS: one bit of every sum is wrong, alike on all ranks.
//
// Ranks on one GPU are refused as NCCL does: by host id and bus id, from 2.30 on unless
// NCCL_MULTI_RANK_GPU_ENABLE is set. EMULATED_NCCL_VERSION=23003 makes it such a version. Variables are read
// once, by the first call that starts NCCL.
#include <mpi.h>
#include <nccl.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "comm/mpi_check.h"
#include "tests/cuda_host/device_memory.h"
#include "tests/cuda_host/nccl_execution.h"
#include "tests/cuda_host/runtime_state.h"

struct ncclComm {
  MPI_Comm mpi = MPI_COMM_NULL;
  int rank = 0, size = 1;
  std::uint64_t calls = 0;       // ncclAllReduce and other collectives
  std::uint64_t executions = 0;  // collectives run on the stream: more than calls if a graph is replayed
  int asked = 0;                 // calls of ncclCommGetAsyncError
  cudaStream_t stream = nullptr;
  bool destroyed = false, aborted = false;
  std::optional<std::chrono::steady_clock::time_point> stalled_since;
};

namespace plumb::gpu::emulated {
namespace {

using CommunicatorPtr = std::shared_ptr<ncclComm>;

std::vector<CommunicatorPtr>& communicators() {  // NCCL's interface leaves no other place for them
  static std::vector<CommunicatorPtr> all;
  return all;
}
std::string& last_error() {
  static std::string text;
  return text;
}

ncclResult_t fail(ncclResult_t result, const std::string& sentence) {
  last_error() = sentence;
  return result;
}

CommunicatorPtr find(ncclComm_t handle) {
  for (const CommunicatorPtr& one : communicators())
    if (one.get() == handle && !one->destroyed) return one;
  return nullptr;
}

int number_in(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

// Whether `variable` is "rank:number" of this rank, with at most `number`.
bool is_reached(const char* variable, int rank, std::uint64_t number) {
  const char* text = std::getenv(variable);
  if (!text) return false;
  char* rest = nullptr;
  const long wanted_rank = std::strtol(text, &rest, 10);
  return rank == wanted_rank && number >= std::strtoull(*rest == ':' ? rest + 1 : "0", nullptr, 10);
}

// The stream's work, once or, in a graph, repeatedly: each run copies it.
struct CollectiveRun {
  CommunicatorPtr communicator;
  NcclAnnouncement announcement;
  std::byte* data = nullptr;
  std::shared_ptr<NcclExecution> execution;

  bool operator()() {
    if (communicator->aborted) return true;
    if (communicator->destroyed)
      throw std::runtime_error("NCCL's stand-in: a collective runs after its communicator was destroyed");
    if (!execution) {
      announcement.execution = communicator->executions++;
      execution = std::make_shared<NcclExecution>(communicator->mpi, announcement);
    }
    if (is_reached("EMULATED_NCCL_STALL", communicator->rank, announcement.execution)) {
      if (!communicator->stalled_since) communicator->stalled_since = std::chrono::steady_clock::now();
      return false;
    }
    if (is_reached("EMULATED_NCCL_HANG", communicator->rank, announcement.execution)) return false;
    if (!execution->move_on(data)) return false;
    if (announcement.kind == NcclKind::all_reduce && std::getenv("EMULATED_NCCL_WRONG_SUMS"))
      data[announcement.elements / 2] ^= std::byte{1};
    return true;
  }
};

// Why NCCL would reject this memory and stream; empty if it wouldn't.
std::string complaint(ncclComm& communicator, const void* data, std::size_t bytes, cudaStream_t stream) {
  if (!stream) return "the default stream is no lane of its own";
  if (stream->blocking) return "the stream waits for the default stream (cudaStreamNonBlocking is missing)";
  if (communicator.stream && communicator.stream != stream)
    return "another stream than before: nothing orders the two on all ranks";
  communicator.stream = stream;
  int gpu = 0;
  cudaGetDevice(&gpu);
  const Allocation* allocation = device_memory().find(data, bytes);
  if (bytes > 0 && (!allocation || allocation->gpu != gpu)) return "not memory of the current GPU";
  return "";
}

// Every rank's text; all have the same length.
std::vector<std::string> gather(MPI_Comm mpi, int size, const std::string& mine) {
  std::string all(mine.size() * static_cast<std::size_t>(size), '\0');
  const int length = static_cast<int>(mine.size());
  check(MPI_Allgather(mine.data(), length, MPI_CHAR, all.data(), length, MPI_CHAR, mpi), "MPI_Allgather");
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < all.size(); at += mine.size()) texts.push_back(all.substr(at, mine.size()));
  return texts;
}

std::string text_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? text : "";
}

// NCCL's variables, as they are when NCCL starts (ncclInit), for the rest of the process.
struct Settings {
  std::string host_id = text_in("NCCL_HOSTID"), multi_rank_gpu = text_in("NCCL_MULTI_RANK_GPU_ENABLE");
};
const Settings& settings() {
  static const Settings read;
  return read;
}

int version() {
  return number_in("EMULATED_NCCL_VERSION", NCCL_VERSION_CODE);
}

// What NCCL compares (getHostHash in its src/misc/utils.cc, and the bus id). Ranks of the emulated GPU are on
// one host, whose name and boot id are the same.
std::string host_and_gpu() {
  std::array<char, 16> bus_id{};
  int gpu = 0;
  cudaGetDevice(&gpu);
  cudaDeviceGetPCIBusId(bus_id.data(), bus_id.size(), gpu);
  std::string text = settings().host_id + " " + bus_id.data();
  text.resize(128);
  return text;
}

// As in NCCL's src/init.cc; empty if the ranks may be where they are.
std::string why_ranks_cannot_share(const ncclComm& made) {
  constexpr int kFirstWithSwitch = 23000;
  const std::vector<std::string> places = gather(made.mpi, made.size, host_and_gpu());
  if (std::set<std::string>(places.begin(), places.end()).size() == places.size()) return "";
  if (version() < kFirstWithSwitch) return "Duplicate GPU detected";
  return settings().multi_rank_gpu == "1" ? "" : "Multiple ranks detected using the same GPU on this node";
}

ncclResult_t complete_init(const ncclComm& made, const ncclUniqueId& id) {
  const std::string id_text(id.internal, sizeof id.internal);
  for (const std::string& other : gather(made.mpi, made.size, id_text))
    if (other != id_text) return fail(ncclInvalidArgument, "ranks came with different ids");
  if (const std::string why = why_ranks_cannot_share(made); !why.empty()) return fail(ncclInvalidUsage, why);
  if (number_in("EMULATED_NCCL_FAIL_INIT", -1) == made.rank)
    return fail(ncclSystemError, "EMULATED_NCCL_FAIL_INIT");
  return ncclSuccess;
}

bool shall_fail(const ncclComm& communicator) {
  constexpr std::chrono::seconds kUntilNoticed{1};
  if (communicator.stalled_since)
    return std::chrono::steady_clock::now() - *communicator.stalled_since > kUntilNoticed;
  return is_reached("EMULATED_NCCL_FAIL", communicator.rank,
                    static_cast<std::uint64_t>(communicator.asked - 1));
}

// Start of this rank's part of the buffer.
std::byte* own_part(ncclComm_t handle, void* whole, std::size_t part_elements, ncclDataType_t type) {
  const CommunicatorPtr communicator = find(handle);
  const int rank = communicator ? communicator->rank : 0;
  return static_cast<std::byte*>(whole) + static_cast<std::size_t>(rank) * part_elements * bytes_of(type);
}

ncclResult_t start(ncclComm_t handle, NcclKind kind, std::size_t elements, ncclDataType_t type,
                   ncclRedOp_t operation, void* whole, cudaStream_t stream) {
  const CommunicatorPtr communicator = find(handle);
  if (!communicator) return fail(ncclInvalidArgument, "no such communicator, or one that was destroyed");
  NcclAnnouncement announcement{.kind = kind,
                                .elements = elements,
                                .type = static_cast<std::uint64_t>(type),
                                .operation = static_cast<std::uint64_t>(operation)};
  if (!is_played(announcement))
    return fail(ncclInvalidArgument, std::string(name_of(kind)) + " with type " + std::to_string(type) +
                                         " and operation " + std::to_string(operation) + " is not played");
  const std::size_t parts = counts_parts(kind) ? static_cast<std::size_t>(communicator->size) : 1;
  const std::string wrong = complaint(*communicator, whole, parts * elements * bytes_of(type), stream);
  if (!wrong.empty()) return fail(ncclInvalidArgument, wrong);
  announcement.call = communicator->calls++;
  const cudaError_t status =
      enqueue(stream, CollectiveRun{communicator, announcement, static_cast<std::byte*>(whole), nullptr});
  return status == cudaSuccess ? ncclSuccess : fail(ncclUnhandledCudaError, cudaGetErrorName(status));
}

}  // namespace
}  // namespace plumb::gpu::emulated

using namespace plumb::gpu::emulated;

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  settings();
  for (std::size_t i = 0; i < sizeof id->internal; ++i) id->internal[i] = static_cast<char>(i * 7 + 1);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* handle, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->blocking != 1) return fail(ncclInvalidArgument, "only blocking communicators are played");
  auto made = std::make_shared<ncclComm>();
  plumb::check(MPI_Comm_dup(MPI_COMM_WORLD, &made->mpi), "MPI_Comm_dup");
  MPI_Comm_rank(made->mpi, &made->rank);
  MPI_Comm_size(made->mpi, &made->size);
  if (made->rank != rank || made->size != size) return fail(ncclInvalidArgument, "not the ranks of the job");
  if (const ncclResult_t result = complete_init(*made, id)) return result;
  *handle = made.get();
  communicators().push_back(std::move(made));
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t handle, cudaStream_t stream) {
  if (from != to) return fail(ncclInvalidArgument, "only collectives in place are played");
  return start(handle, NcclKind::all_reduce, count, type, operation, to, stream);
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t handle,
                           cudaStream_t stream) {
  if (from != own_part(handle, to, count, type))
    return fail(ncclInvalidArgument, "only collectives in place are played");
  return start(handle, NcclKind::all_gather, count, type, ncclSum, to, stream);
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t handle, cudaStream_t stream) {
  auto* whole = const_cast<void*>(from);
  if (to != own_part(handle, whole, count, type))
    return fail(ncclInvalidArgument, "only collectives in place are played");
  return start(handle, NcclKind::reduce_scatter, count, type, operation, whole, stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t handle, cudaStream_t stream) {
  if (from != to || root != 0)
    return fail(ncclInvalidArgument, "only broadcasts in place, from rank 0, are played");
  return start(handle, NcclKind::broadcast, count, type, ncclSum, to, stream);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* state) {
  const CommunicatorPtr communicator = find(handle);
  if (!communicator) return fail(ncclInvalidArgument, "no such communicator, or one that was destroyed");
  ++communicator->asked;
  *state = shall_fail(*communicator) ? fail(ncclRemoteError, "EMULATED_NCCL_FAIL") : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  const CommunicatorPtr communicator = find(handle);
  if (!communicator) return fail(ncclInvalidArgument, "no such communicator, or one that was destroyed");
  communicator->destroyed = true;
  plumb::check(MPI_Comm_free(&communicator->mpi), "MPI_Comm_free");
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  const CommunicatorPtr communicator = find(handle);
  if (!communicator) return fail(ncclInvalidArgument, "no such communicator, or one that was destroyed");
  communicator->destroyed = communicator->aborted = true;  // pending requests may never end: MPI keeps them
  return ncclSuccess;
}

ncclResult_t ncclGetVersion(int* version) {
  *version = plumb::gpu::emulated::version();
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "internal error";
  }
}
const char* ncclGetLastError(ncclComm_t) {
  return last_error().c_str();
}

}  // extern "C"
