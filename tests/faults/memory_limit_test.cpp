// R12: a limit on memory ends a run with 71 and the bytes on every rank, never with a crash or a hang.
#include <gtest/gtest.h>

#include "tests/faults/started_program.h"

namespace plumb {
namespace {

struct Limited {
  int kibibytes;  // ulimit -v of each rank
  int batch;
  int code;
  std::vector<std::string> words;
};

class MemoryLimit : public testing::TestWithParam<int> {};

TEST_P(MemoryLimit, IsToldOnEveryRank) {
  if (!std::string(PLUMB_TEST_SANITIZERS).empty()) GTEST_SKIP() << "sanitizers reserve the address space";
  const int ranks = GetParam();
  for (const Limited& limited :
       {Limited{400'000, 2, kOutOfMemory, {"more bytes", "ulimit -v", "raise that limit"}},
        Limited{1'200'000, 1000, kOutOfMemory, {"bytes for --bs 1000", "by the plan --bs "}},
        Limited{4'000'000, 2, 0, {}}}) {
    SCOPED_TRACE(limited.kibibytes);
    const Place place;
    const std::string rank =
        "sh -c \"ulimit -v " + std::to_string(limited.kibibytes) + " && exec " +
        place.bench(kTiny + "--iters 2 --lr 0.001 --bs " + std::to_string(limited.batch)) + "\"";
    const Ended ended = place.run(ranks == 1 ? rank : Place::mpirun(ranks, rank));
    if (limited.code == 0)
      EXPECT_EQ(ended.exit_code, 0) << testing::PrintToString(ended.lines);
    else
      expect_one_sentence(ended, limited.code, limited.words);
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, MemoryLimit, testing::Values(1, 2),
                         [](const auto& tested) { return "Of" + std::to_string(tested.param) + "Ranks"; });

}  // namespace
}  // namespace plumb
