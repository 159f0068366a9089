// R12: a limit on memory ends a run with 71 and the bytes on every rank, never with a crash or a hang.
#include <gtest/gtest.h>

#include "tests/bench/image_files.h"
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
       {Limited{400'000, 2, kOutOfMemory, {"bytes of address space", "ulimit -v", "raise the limit"}},
        Limited{1'200'000, 1000, kOutOfMemory, {"bytes for --bs 1000", "according to the plan --bs "}},
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
    for (const std::string& line : ended.lines)
      EXPECT_EQ(line.find("rank 0 on"), line.rfind("rank 0 on")) << "said twice: " << line;
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, MemoryLimit, testing::Values(1, 2),
                         [](const auto& tested) { return "Of" + std::to_string(tested.param) + "Ranks"; });

// Their stacks and decoders', which malloc's arenas would add to.
TEST(MemoryLimitOfManyThreads, IsToldBeforeOneCannotBeStarted) {
  if (!std::string(PLUMB_TEST_SANITIZERS).empty()) GTEST_SKIP() << "sanitizers reserve the address space";
  int refused = 0, trained = 0;
  for (int kibibytes = 550'000; kibibytes <= 1'250'000; kibibytes += 100'000) {
    SCOPED_TRACE(kibibytes);
    const Place place;
    write_image_folder(place.file("images"), 2, 8);
    const std::string bench = place.bench(
        "--backbone y1 --head dp --classes 100 --warmup 1 --iters 2 --bs 2 --lr 0.001 --data images "
        "--threads 8 --oversubscribe-threads --data-workers 8");
    const Ended ended =
        place.run("sh -c 'ulimit -v " + std::to_string(kibibytes) + " && exec " + bench + "'");
    ++(ended.exit_code == 0 ? trained : refused);
    if (ended.exit_code != 0) expect_one_sentence(ended, kOutOfMemory, {"bytes"});
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(trained, 0);
}

TEST(OpenFiles, TooFewAreReportedBeforeMpiStarts) {
  const Place place;
  expect_one_sentence(place.run("sh -c 'ulimit -n 32 && exec " + place.bench(kOne + "--iters 2") + "'"),
                      kUnavailable, {"ulimit -n 32", "64 open files", "raise that limit"});
}

// Each takes 92 MiB of coefficients, which two workers may not have at once.
TEST(ProgressivePhotographs, AreDecodedInTheMemoryThatIsPlanned) {
  if (!std::string(PLUMB_TEST_SANITIZERS).empty()) GTEST_SKIP() << "sanitizers keep freed memory";
  const Place place;
  for (int i = 0; i < 8; ++i)
    write_file(place.file("images/class/" + std::to_string(i) + ".jpg"), progressive_jpeg(4000, 4000));
  const Ended ended =
      place.run(place.resnet50(kSmallImages + "--iters 8 --data images --data-workers 8 --lr 0.001"));
  EXPECT_EQ(ended.exit_code, 0) << testing::PrintToString(ended.lines);
  EXPECT_LT(ended.peak_bytes, std::size_t{250} << 20);
}

}  // namespace
}  // namespace plumb
