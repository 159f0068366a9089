// How ranks carry out one collective by messages between pairs of them, in place. Any number may be under way
// at once.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace plumb {

// Ranks of a host stand side by side, however the launcher dealt them out.
struct RanksByHost {
  MPI_Comm communicator;
  std::size_t position;  // of this rank in `ranks`
  std::vector<int> ranks;
};

// Memory that messages arrive in. Between processes of a host the kernel copies them (process_vm_readv, rep
// movsb), which takes twice as long into other addresses.
struct alignas(64) CacheLine {
  std::byte bytes[64];

  static std::size_t lines_of(std::size_t bytes) {
    return (bytes + sizeof(CacheLine) - 1) / sizeof(CacheLine);
  }
};

class CollectiveAlgorithm {
 public:
  struct Work {
    std::byte* data;
    std::size_t elements, element_bytes;
    bool reduces, gathers;  // at least one; both for an allreduce
    MPI_Datatype type;      // these two only if it reduces; the operation must be commutative
    MPI_Op operation;
    int tag;  // of its own among the collectives under way on this communicator
  };

  virtual ~CollectiveAlgorithm() = default;
  // Requires ended(). All ranks start the same work.
  virtual void start(const Work& work) = 0;
  // Does all that is possible without waiting. Throws mpi_error().
  virtual void advance() = 0;
  virtual bool ended() const = 0;
};

}  // namespace plumb
