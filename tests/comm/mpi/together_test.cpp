#include <new>
#include <stdexcept>
#include <system_error>

#include "tests/comm/mpi/mpi_test.h"

namespace plumb {
namespace {

using Together = MpiTest;

struct Outcome {
  bool threw = false;
  bool told_elsewhere = false;
  ExitCode code = ExitCode::ok;
  std::string sentence;
};

Outcome outcome_of(const Job& job, const std::function<void()>& set_up) {
  try {
    job.together(set_up);
  } catch (const ErrorToldElsewhere& error) {
    return {true, true, error.code(), error.what()};
  } catch (const Error& error) {
    return {true, false, error.code(), error.what()};
  }
  return {};
}

TEST_F(Together, SuccessEverywhereIsSilent) {
  int runs = 0;
  EXPECT_FALSE(outcome_of(job(), [&] { ++runs; }).threw);
  EXPECT_EQ(runs, 1);
}

TEST_F(Together, AnErrorOnOneRankReachesAll) {
  const int failing = job().size() - 1;
  const Outcome outcome = outcome_of(job(), [&] {
    if (job().rank() == failing) throw Error(ExitCode::bad_data, "--data x holds no class folder");
  });
  EXPECT_TRUE(outcome.threw);
  EXPECT_EQ(outcome.code, ExitCode::bad_data);
  EXPECT_EQ(outcome.sentence, "--data x holds no class folder");
  EXPECT_EQ(outcome.told_elsewhere, job().rank() != failing);
}

TEST_F(Together, OfSeveralErrorsTheLowestRanksIsThrown) {
  const int lowest = job().size() > 1 ? 1 : 0;
  const Outcome outcome = outcome_of(job(), [&] {
    if (job().rank() >= lowest) throw Error(ExitCode::usage, "from rank " + std::to_string(job().rank()));
  });
  EXPECT_EQ(outcome.sentence, "from rank " + std::to_string(lowest));
  EXPECT_EQ(outcome.told_elsewhere, job().rank() != lowest);
}

TEST_F(Together, OtherExceptionsBecomeErrors) {
  const Outcome defect = outcome_of(job(), [] { throw std::logic_error("a view of a view"); });
  EXPECT_EQ(defect.code, ExitCode::internal);
  EXPECT_EQ(defect.sentence, "internal error: a view of a view");
  EXPECT_EQ(outcome_of(job(), [] { throw std::bad_alloc(); }).code, ExitCode::out_of_memory);
  const auto no_thread = std::make_error_code(std::errc::resource_unavailable_try_again);
  EXPECT_EQ(outcome_of(job(), [&] { throw std::system_error(no_thread); }).code, ExitCode::out_of_memory);
}

TEST_F(Together, TheJobGoesOnAfterwards) {
  outcome_of(job(), [&] {
    if (job().rank() == 0) throw Error(ExitCode::usage, "");
  });
  EXPECT_EQ(job().sum({1}).front(), job().size());
}

}  // namespace
}  // namespace plumb
