#include "comm/shared_memory.h"

#include <sys/resource.h>

#include <algorithm>

#include "tests/comm/mpi/mpi_test.h"

namespace plumb {
namespace {

using SharedMemoryOfRanks = MpiTest;

TEST_F(SharedMemoryOfRanks, BeginsAsZerosAndShowsEachRankWhatOthersWrote) {
  const std::size_t bytes = 100'000, mine = static_cast<std::size_t>(job().rank());
  const auto memory = SharedMemory::make(MPI_COMM_WORLD, bytes);
  ASSERT_TRUE(memory);
  EXPECT_TRUE(
      std::all_of(memory->data(), memory->data() + bytes, [](std::byte b) { return b == std::byte(0); }));
  job().barrier();
  memory->data()[bytes - 1 - mine] = std::byte(mine + 1);
  job().barrier();
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(job().size()); ++rank)
    EXPECT_EQ(memory->data()[bytes - 1 - rank], std::byte(rank + 1));
}

TEST_F(SharedMemoryOfRanks, IsNobodysIfOneCannotOpenIt) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  if (job().rank() + 1 == job().size()) {
    const rlimit none{0, files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  EXPECT_EQ(SharedMemory::make(MPI_COMM_WORLD, 100'000), nullptr);
  setrlimit(RLIMIT_NOFILE, &files);
  EXPECT_NE(SharedMemory::make(MPI_COMM_WORLD, 100'000), nullptr);
}

}  // namespace
}  // namespace plumb
