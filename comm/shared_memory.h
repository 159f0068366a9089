// Memory that all ranks of a host write to and read from, zeroed at first. It has no name in any file system,
// so nothing is left of it when its last rank ends, however that ends.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>

namespace plumb {

class SharedMemory {
 public:
  // Every rank of the communicator calls it, all on one host. Null on every rank if one of them can't have
  // it: too little memory, or containers that don't see each other's processes. Throws mpi_error().
  static std::unique_ptr<SharedMemory> make(MPI_Comm ranks, std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return data_; }  // page-aligned

 private:
  SharedMemory(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}

  std::byte* data_;
  std::size_t bytes_;
};

}  // namespace plumb
