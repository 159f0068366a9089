// R6: a full disk is reported, and everything written before still parses.
#include <gtest/gtest.h>

#include "tests/faults/started_program.h"

namespace plumb {
namespace {

// Runs `command` with a file system of `bytes` at "logs", unmounted afterwards; its files are copied to
// "kept".
std::string on_small_disk(const std::string& bytes, const std::string& command) {
  return "mkdir logs && unshare -m sh -c \"mount -t tmpfs -o size=" + bytes + " none logs && " + command +
         "; code=\\$?; cp -r logs/. kept; exit \\$code\"";
}

TEST(FullDisk, EndsTheRunAndKeepsEveryWholeLine) {
  if (!can_mount()) GTEST_SKIP() << "mounting is not permitted here";
  const Place place;
  // One page for the case's name, one for lines.
  const Ended ended = place.run(
      on_small_disk("8k", place.bench("--image-size 32 --bs 1 --iters 200 --warmup 1 --threads 1")));
  EXPECT_EQ(ended.exit_code, kIoError) << ended.launcher_messages;
  ASSERT_FALSE(ended.lines.empty());
  EXPECT_LE(ended.lines.size(), 4u);
  EXPECT_NE(ended.lines.back().find("space"), std::string::npos) << ended.lines.back();
  EXPECT_NE(ended.lines.back().find("--log-dir"), std::string::npos) << ended.lines.back();
  expect_no_score(place, "logs/1n1g/resnet50_b1_fp32_1.log.part");
  const std::vector<std::string> parts = place.contents_ending_in(".log.part");
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_GE(expect_whole_lines(place.file(parts.front())), 10);
}

TEST(FullDisk, OnRank0EndsTheOtherRankToo) {
  if (!can_mount()) GTEST_SKIP() << "mounting is not permitted here";
  const Place place;
  StartedProgram program =
      place.start(on_small_disk("4k", Place::mpirun(2, place.bench(kSmall + "--iters 200"))));
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, kIoError) << ended.launcher_messages;
  ASSERT_FALSE(ended.lines.empty());
  EXPECT_NE(ended.lines.back().find("rank 0"), std::string::npos) << ended.lines.back();
  EXPECT_TRUE(program.processes().empty());
  expect_no_score(place, "can't be written at iteration 0");
  EXPECT_TRUE(place.contents_ending_in(".log.part").empty()) << "an empty log is left";
}

// No space at all: found before anything is computed.
TEST(FullDisk, BeforeTheFirstIterationNothingIsLeft) {
  if (!can_mount()) GTEST_SKIP() << "mounting is not permitted here";
  const Place place;
  const Ended ended = place.run(on_small_disk(
      "4k", "sh -c 'head -c 4096 /dev/zero >logs/filler' && " + place.bench(kSmall + "--iters 4")));
  expect_one_sentence(ended, 73, {"logs/1n1g", "No space left", "--log-dir"});
  EXPECT_TRUE(place.contents_ending_in(".json").empty());
}

}  // namespace
}  // namespace plumb
