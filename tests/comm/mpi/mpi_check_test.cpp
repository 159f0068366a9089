#include "comm/mpi_check.h"

#include <gtest/gtest.h>

#include <string>

namespace plumb {
namespace {

Error error_for(int code) {
  try {
    check(code, "MPI_Iallreduce");
  } catch (const Error& error) {
    return error;
  }
  return Error(ExitCode::ok, "no error");
}

TEST(MpiCheck, SuccessPasses) {
  EXPECT_NO_THROW(check(MPI_SUCCESS, "MPI_Iallreduce"));
}

TEST(MpiCheck, OtherFailuresBlameAPeer) {
  EXPECT_EQ(error_for(MPI_ERR_OTHER).code(), ExitCode::peer_lost);
}

TEST(MpiCheck, LackOfMemoryHasItsOwnCode) {
  EXPECT_EQ(error_for(MPI_ERR_NO_MEM).code(), ExitCode::out_of_memory);
}

TEST(MpiCheck, NamesCallPlaceAndMpisWords) {
  const std::string sentence = error_for(MPI_ERR_COUNT).what();
  EXPECT_NE(sentence.find("MPI_Iallreduce failed"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("nvalid count"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("(mpi_check_test.cpp:"), std::string::npos) << sentence;
}

}  // namespace
}  // namespace plumb
