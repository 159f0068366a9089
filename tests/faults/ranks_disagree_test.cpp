// R9: all ranks run the same configuration, or nothing runs.
#include <gtest/gtest.h>

#include "tests/bench/image_files.h"
#include "tests/faults/started_program.h"

namespace plumb {
namespace {

const std::string kTwoSteps = kTiny + "--iters 2 ";

TEST(RanksDisagree, OtherOptionsOnOneRank) {
  const Place place;
  const Ended ended = place.run(Place::mpirun(1, place.bench(kTwoSteps + "--bs 2")) + " : -np 1 " +
                                place.bench(kTwoSteps + "--bs 4"));
  expect_one_sentence(
      ended, kUsage,
      {"rank 1", "options", "has batch_per_device=4 where the others have batch_per_device=2"});
  EXPECT_TRUE(place.contents().empty());
}

TEST(RanksDisagree, OddOneOutIsNamedWhereverItIs) {
  const Place place;
  const Ended ended = place.run(Place::mpirun(1, place.bench(kTwoSteps + "--seed 7")) + " : -np 2 " +
                                place.bench(kTwoSteps + "--seed 8"));
  expect_one_sentence(ended, kUsage,
                      {"rank 0 on", "has seed=7 where the others have seed=8", "the same options"});
  EXPECT_TRUE(place.contents().empty());
}

TEST(RanksDisagree, AnotherBinaryOfTheSameCommit) {
  const Place place;
  const Ended ended = place.run(Place::mpirun(1, place.bench(kTwoSteps + "--bs 2")) + " : -np 1 " +
                                place.damaged(kTwoSteps + "--bs 2"));
  expect_one_sentence(ended, kUsage,
                      {"rank 1 on", "has build_id=", "where the others have build_id=", "the same build"});
  EXPECT_TRUE(place.contents().empty());
}

// The same path is a different folder on each rank, as with per-host disks.
TEST(RanksDisagree, OtherImagesOnOneRank) {
  const Place place;
  const std::string bench = place.bench(kTwoSteps + "--bs 2 --data images ");
  for (const char* host : {"host0", "host1"})
    write_image_folder(place.file(std::string(host) + "/images"), 2, 3);
  std::filesystem::remove(place.file("host1/images/class_1000/image_1.jpg"));
  const Ended ended = place.run(Place::mpirun(1, "-wdir " + place.file("host0") + " " + bench) +
                                " : -np 1 -wdir " + place.file("host1") + " " + bench);
  expect_one_sentence(ended, kUsage,
                      {"rank 1 on", "has images=5 where the others have images=6", "the same --data"});
}

TEST(RanksDisagree, OptionThatOnlyOneRankRefuses) {
  const Place place;
  const Ended ended = place.run(Place::mpirun(1, place.bench(kTwoSteps + "--bs 2")) + " : -np 1 " +
                                place.bench(kTwoSteps + "--bs 0"));
  expect_one_sentence(ended, kUsage, {"rank 1", "--bs 0: expected"});
  EXPECT_TRUE(place.contents().empty());
}

// A CPU with fewer features chooses other layouts for convolution weights and gradients: blocks of 8 channels
// with SSE4.1 as with AVX2, of 16 with AVX-512.
TEST(RanksDisagree, OtherKindOfCpuOnOneRank) {
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "this CPU without AVX-512 has SSE4.1's layouts";
  const Place place;
  const Ended ended = place.run(Place::mpirun(1, place.bench(kTwoSteps + "--bs 2")) +
                                " : -np 1 env DNNL_MAX_CPU_ISA=SSE41 ONEDNN_MAX_CPU_ISA=SSE41 " +
                                place.bench(kTwoSteps + "--bs 2"));
  EXPECT_EQ(ended.exit_code, kUsage) << ended.launcher_messages;
  ASSERT_FALSE(ended.lines.empty());
  EXPECT_NE(ended.lines.back().find("rank 1"), std::string::npos) << ended.lines.back();
  EXPECT_NE(ended.lines.back().find("another Program"), std::string::npos);
  EXPECT_NE(ended.lines.back().find("set DNNL_MAX_CPU_ISA alike on all"), std::string::npos);
  expect_no_score(place, "Program");
}

// Removes the variables through which MPI joins the job; the launcher's process count stays.
std::string outside_the_job(const Place& place, const std::string& command) {
  write_text(place.file("../alone.sh"),
             "for name in $(env | sed -n 's/^\\(PMIX_[A-Za-z0-9_]*\\|PMI_FD\\|"
             "OMPI_MCA_[A-Za-z0-9_]*\\)=.*/\\1/p'); do unset $name; done\nexec \"$@\"\n");
  return "sh ../alone.sh " + command;
}

TEST(RanksDisagree, WorldsOfOneUnderOneLauncher) {
  const Place place;
  const Ended ended = place.run(Place::mpirun(2, outside_the_job(place, place.bench(kTwoSteps + "--bs 2"))));
  expect_one_sentence(ended, kUsage, {"the launcher started 2 processes", "MPI sees 1"});
  EXPECT_TRUE(place.contents().empty());
}

TEST(RanksDisagree, OneRankOutsideItsJob) {
  const Place place;
  const std::string command = place.bench(kTwoSteps + "--bs 2");
  const Ended ended = place.run(Place::mpirun(1, command) + " : -np 1 " + outside_the_job(place, command));
  expect_one_sentence(ended, kUsage, {"rank 1", "the launcher started 2 processes"});
  EXPECT_TRUE(place.contents().empty());
}

}  // namespace
}  // namespace plumb
