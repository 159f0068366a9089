#include "tests/comm/mpi/mpi_test.h"

namespace plumb {
namespace {

using RequireSame = MpiTest;

TEST_F(RequireSame, EqualTextsPass) {
  EXPECT_NO_THROW(job().require_same("options", "--bs=8\n--iters=120\n"));
}

TEST_F(RequireSame, NamesTheOddRankItsHostAndTheOption) {
  if (job().size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  const bool is_odd = job().rank() == 1;
  bool told_elsewhere = false;
  try {
    job().require_same("options", is_odd ? "--bs=16\n--iters=120\n" : "--bs=8\n--iters=120\n");
    ADD_FAILURE() << "nothing thrown";
  } catch (const Error& error) {
    told_elsewhere = dynamic_cast<const ErrorToldElsewhere*>(&error) != nullptr;
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(error.what(), "rank 1 on " + job().host() +
                                " has --bs=16 where the others have --bs=8; "
                                "start every rank with the same options");
  }
  EXPECT_EQ(told_elsewhere, job().rank() != 0);
}

}  // namespace
}  // namespace plumb
