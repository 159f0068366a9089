// Every rank runs all tests; all exit with 1 if a test failed on any.
#include <iostream>

#include "tests/comm/mpi/mpi_test.h"

namespace {

// Output of ranks above 0: failures, with the rank.
class FailuresOnly : public testing::EmptyTestEventListener {
 public:
  explicit FailuresOnly(int rank) : rank_(rank) {}
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::cerr << "rank " << rank_ << ": " << (result.file_name() ? result.file_name() : "?") << ":"
              << result.line_number() << "\n"
              << result.message() << std::endl;
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (test.result()->Failed()) {
      std::cerr << "rank " << rank_ << " failed " << test.test_suite_name() << "." << test.name()
                << std::endl;
    }
  }

 private:
  int rank_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const plumb::Job job(&argc, &argv);
  plumb::MpiTest::set_job(&job);
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (job.rank() > 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOnly(job.rank()));  // GoogleTest deletes it
  }
  const int failed = RUN_ALL_TESTS();
  return job.sum({static_cast<double>(failed)}).front() > 0 ? 1 : 0;
}
