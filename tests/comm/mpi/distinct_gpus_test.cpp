#include "comm/distinct_gpus.h"

#include "tests/comm/mpi/mpi_test.h"

namespace plumb {
namespace {

using DistinctGpus = MpiTest;

TEST_F(DistinctGpus, OneEachPasses) {
  EXPECT_EQ(require_distinct_gpus(job(), "GPU-" + std::to_string(job().rank()), false), 1);
  EXPECT_EQ(require_distinct_gpus(job(), "", false), 1);
}

TEST_F(DistinctGpus, ASharedOneIsRefusedOnEveryRankAndToldByOne) {
  if (job().size() == 1) GTEST_SKIP() << "one rank shares with nobody";
  bool told_elsewhere = false;
  try {
    require_distinct_gpus(job(), "GPU-a", false);
    ADD_FAILURE() << "nothing thrown";
  } catch (const Error& error) {
    told_elsewhere = dynamic_cast<const ErrorToldElsewhere*>(&error) != nullptr;
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find(" both use GPU-a; "), std::string::npos) << error.what();
  }
  EXPECT_EQ(told_elsewhere, job().rank() != 0);
}

TEST_F(DistinctGpus, SharingMayBeAllowedAndIsCounted) {
  EXPECT_EQ(require_distinct_gpus(job(), "GPU-a", true), job().size());
}

}  // namespace
}  // namespace plumb
