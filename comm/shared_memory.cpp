#include "comm/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/error.h"
#include "base/unique_fd.h"
#include "comm/mpi_check.h"

namespace plumb {
namespace {

// Where the other ranks find rank 0's file, and how they know that it is the one.
struct Place {
  pid_t process = 0;
  int fd = -1;
  dev_t device = 0;
  ino_t inode = 0;
};

UniqueFd create(std::size_t bytes, Place& place) {
  UniqueFd file(memfd_create("plumbline", MFD_CLOEXEC));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0) return {};
  // Reserves it: memory that is missing later would be a SIGBUS.
  if (posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)) != 0) return {};
  place = {getpid(), file.get(), status.st_dev, status.st_ino};
  return file;
}

UniqueFd open(const Place& place) {
  const std::string path = fmt::format("/proc/{}/fd/{}", place.process, place.fd);
  struct stat status {};
  if (place.fd < 0 || stat(path.c_str(), &status) != 0) return {};
  if (status.st_dev != place.device || status.st_ino != place.inode) return {};
  return UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
}

}  // namespace

std::unique_ptr<SharedMemory> SharedMemory::make(MPI_Comm ranks, std::size_t bytes) {
  int rank = 0;
  check(MPI_Comm_rank(ranks, &rank), "MPI_Comm_rank");
  Place place;
  UniqueFd file;
  if (rank == 0) file = create(bytes, place);
  check(MPI_Bcast(&place, sizeof place, MPI_BYTE, 0, ranks), "MPI_Bcast");
  if (rank != 0) file = open(place);
  void* const address =
      file ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0) : MAP_FAILED;
  std::unique_ptr<SharedMemory> mine;
  if (address != MAP_FAILED) mine.reset(new SharedMemory(static_cast<std::byte*>(address), bytes));
  int all_have_it = mine != nullptr;  // also says that nobody opens rank 0's file any more
  check(MPI_Allreduce(MPI_IN_PLACE, &all_have_it, 1, MPI_INT, MPI_MIN, ranks), "MPI_Allreduce");
  if (!all_have_it) mine.reset();
  return mine;
}

SharedMemory::~SharedMemory() {
  munmap(data_, bytes_);
}

}  // namespace plumb
