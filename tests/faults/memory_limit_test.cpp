// R12: limits on open files and on memory: one sentence before MPI starts, and no more memory than planned.
#include <gtest/gtest.h>

#include "tests/bench/image_files.h"
#include "tests/faults/started_program.h"

namespace plumb {
namespace {

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
