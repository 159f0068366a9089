#include <unistd.h>

#include "comm/launcher.h"
#include "tests/comm/mpi/mpi_test.h"

namespace plumb {
namespace {

using Places = MpiTest;

TEST_F(Places, RanksOfOneHostAreLocal) {
  EXPECT_EQ(job().local_rank(), job().rank());
  EXPECT_EQ(job().local_size(), job().size());
  EXPECT_EQ(job().nodes(), 1);
  EXPECT_EQ(job().devices_per_node(), job().size());
}

TEST_F(Places, SizeIsWhatTheLauncherStarted) {
  EXPECT_EQ(job().size(), launched_as().size);
  EXPECT_EQ(job().rank(), launched_as().rank);
}

TEST_F(Places, HostIsThisMachine) {
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof(name) - 1), 0);
  EXPECT_EQ(job().host(), name);
}

}  // namespace
}  // namespace plumb
