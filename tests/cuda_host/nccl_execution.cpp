#include "tests/cuda_host/nccl_execution.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "comm/half_sum.h"
#include "comm/mpi_check.h"

namespace plumb::gpu::emulated {
namespace {

std::string text_of(const NcclAnnouncement& one) {
  return std::string(name_of(one.kind)) + " " + std::to_string(one.call) + " of " +
         std::to_string(one.elements) + " elements of type " + std::to_string(one.type) +
         (one.operation == ncclSum ? "" : " with operation " + std::to_string(one.operation)) + " as its " +
         std::to_string(one.execution) + ".";
}

void add_f16_elements(void* in, void* in_out, int* count, MPI_Datatype*) {
  add_f16(static_cast<const _Float16*>(in), static_cast<_Float16*>(in_out), static_cast<std::size_t>(*count));
}
void add_bf16_elements(void* in, void* in_out, int* count, MPI_Datatype*) {
  add_bf16(static_cast<const std::uint16_t*>(in), static_cast<std::uint16_t*>(in_out),
           static_cast<std::size_t>(*count));
}

struct Reduction {
  MPI_Datatype type;
  MPI_Op operation;
};
Reduction reduction_of(const NcclAnnouncement& one) {
  if (one.type == ncclFloat32) return {MPI_FLOAT, one.operation == ncclMax ? MPI_MAX : MPI_SUM};
  // Kept until the process ends: pending requests may need them.
  static const auto operations = [] {
    std::array<MPI_Op, 2> made{};
    check(MPI_Op_create(add_f16_elements, 1, &made[0]), "MPI_Op_create");
    check(MPI_Op_create(add_bf16_elements, 1, &made[1]), "MPI_Op_create");
    return made;
  }();
  return {MPI_UINT16_T, operations[one.type == ncclFloat16 ? 0 : 1]};
}

}  // namespace

const char* name_of(NcclKind kind) {
  if (kind == NcclKind::all_gather) return "all-gather";
  if (kind == NcclKind::broadcast) return "broadcast";
  return kind == NcclKind::all_reduce ? "all-reduce" : "reduce-scatter";
}

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 4;
  }
}

bool is_played(const NcclAnnouncement& one) {
  if (one.kind == NcclKind::all_gather || one.kind == NcclKind::broadcast) return true;
  const bool half = one.type == ncclFloat16 || one.type == ncclBfloat16;
  return one.type == ncclFloat32 ? one.operation == ncclSum || one.operation == ncclMax
                                 : half && one.operation == ncclSum;
}

bool counts_parts(NcclKind kind) {
  return kind == NcclKind::all_gather || kind == NcclKind::reduce_scatter;
}

NcclExecution::NcclExecution(MPI_Comm mpi, const NcclAnnouncement& announcement)
    : mpi_(mpi), mine_(announcement) {
  int size = 1;
  MPI_Comm_size(mpi, &size);
  all_.resize(static_cast<std::size_t>(size));
  check(MPI_Iallgather(&mine_, sizeof mine_, MPI_BYTE, all_.data(), sizeof mine_, MPI_BYTE, mpi_, &request_),
        "MPI_Iallgather");
}

bool NcclExecution::move_on(std::byte* data) {
  int ended = 0;
  check(MPI_Test(&request_, &ended, MPI_STATUS_IGNORE), "MPI_Test");
  if (!ended) return false;
  if (values_.empty() && mine_.elements > 0) {
    require_agreement();
    carry(data);
    return false;
  }
  spoil_other_parts();
  std::copy(values_.begin(), values_.end(), data);
  return true;
}

void NcclExecution::require_agreement() const {
  for (std::size_t rank = 0; rank < all_.size(); ++rank) {
    if (all_[rank] == all_[0]) continue;
    throw std::runtime_error("NCCL's stand-in: rank " + std::to_string(rank) + " runs " +
                             text_of(all_[rank]) + " where rank 0 runs " + text_of(all_[0]));
  }
}

void NcclExecution::carry(const std::byte* data) {
  const std::size_t part_bytes = mine_.elements * bytes_of(static_cast<ncclDataType_t>(mine_.type));
  const std::size_t parts = counts_parts(mine_.kind) ? all_.size() : 1;
  const int count = static_cast<int>(mine_.elements);
  values_.assign(data, data + parts * part_bytes);
  if (mine_.kind == NcclKind::all_gather) {
    check(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values_.data(), static_cast<int>(part_bytes),
                         MPI_BYTE, mpi_, &request_),
          "MPI_Iallgather");
    return;
  }
  if (mine_.kind == NcclKind::broadcast) {
    check(MPI_Ibcast(values_.data(), static_cast<int>(part_bytes), MPI_BYTE, 0, mpi_, &request_),
          "MPI_Ibcast");
    return;
  }
  const Reduction reduction = reduction_of(mine_);
  // Every rank gets everything but may read only its own part.
  check(MPI_Iallreduce(MPI_IN_PLACE, values_.data(), count * static_cast<int>(parts), reduction.type,
                       reduction.operation, mpi_, &request_),
        "MPI_Iallreduce");
}

void NcclExecution::spoil_other_parts() {
  if (mine_.kind != NcclKind::reduce_scatter) return;
  int rank = 0;
  MPI_Comm_rank(mpi_, &rank);
  const std::size_t part_bytes = values_.size() / all_.size();
  for (std::size_t byte = 0; byte < values_.size(); ++byte)
    if (byte / part_bytes != static_cast<std::size_t>(rank)) values_[byte] = std::byte{0xff};  // NaN
}

}  // namespace plumb::gpu::emulated
