// One collective of the NCCL stand-in (nccl_over_mpi.cpp), run by a stream over MPI.
#pragma once

#include <mpi.h>
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plumb::gpu::emulated {

enum class NcclKind : std::uint64_t { all_reduce, all_gather, reduce_scatter, broadcast };
const char* name_of(NcclKind kind);
std::size_t bytes_of(ncclDataType_t type);

// Must agree on all ranks before data moves. elements: as in the call; for one rank's part in collectives
// with parts.
struct NcclAnnouncement {
  std::uint64_t execution = 0, call = 0;
  NcclKind kind = NcclKind::all_reduce;
  std::uint64_t elements = 0, type = 0, operation = ncclSum;
  bool operator==(const NcclAnnouncement&) const = default;
};

// Gathers and broadcasts of any type; sums of f32, f16 and bf16; maxima of f32.
bool is_played(const NcclAnnouncement& one);
// Whether the call's elements are those of one rank's part.
bool counts_parts(NcclKind kind);

// Runs outside GPU memory, which is protected from the host while no operation runs, but not from MPI. After
// a reduce-scatter, the other ranks' parts are overwritten. `mpi` must outlive it.
class NcclExecution {
 public:
  NcclExecution(MPI_Comm mpi, const NcclAnnouncement& announcement);
  // True once it has ended. `data`: the whole buffer. Throws std::runtime_error if ranks disagree.
  bool move_on(std::byte* data);

 private:
  void require_agreement() const;
  void carry(const std::byte* data);
  void spoil_other_parts();

  MPI_Comm mpi_;
  NcclAnnouncement mine_;
  std::vector<NcclAnnouncement> all_;
  std::vector<std::byte> values_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace plumb::gpu::emulated
