// Messages and exit codes of bench_resnet50 when GPUs are missing, too few, too old or too small, or fail
// during a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "tests/faults/started_program.h"

namespace plumb {
namespace {

const std::string kCuda = kSmallImages + "--device cuda --no-autotune ";

Ended run(const Place& place, int ranks, const std::string& arguments, const std::string& environment) {
  const std::string command = place.resnet50(arguments);
  return place.run(ranks > 1 ? Place::mpirun(ranks, command) : command, environment);
}

// Whether a line has all `words`.
bool says(const Ended& ended, const std::vector<std::string>& words) {
  return std::ranges::any_of(ended.lines, [&](const std::string& line) {
    return std::ranges::all_of(words,
                               [&](const std::string& word) { return line.find(word) != std::string::npos; });
  });
}

TEST(CudaBadInput, IsToldInOneSentenceAndLeavesNothing) {
  struct Case {
    int ranks;
    std::string arguments, environment;
    int exit_code;
    std::vector<std::string> words;
  };
  for (const Case& one : std::vector<Case>{
           {1, "", "EMULATED_GPUS=0", 69, {"--device", "no CUDA GPU answers", "--device cpu"}},
           {1, "--bf16", "EMULATED_GPU_CAPABILITY=75", 64, {"--bf16", "--fp16", "--fp32"}},
           {1, "", "EMULATED_GPU_CAPABILITY=35", 69, {"Emulated GPU", "sm_35", "compute_50"}},
           {2, "", "EMULATED_GPUS=1", 64, {"rank 0", "rank 1", "GPU", "--share-gpu"}},
           {1, "", "EMULATED_GPU_MEMORY=5000000", 71, {"rank 0", "bytes", "--bs"}},
           {2,
            "--comm nccl --share-gpu --quiet",
            "EMULATED_GPUS=1 NCCL_HOSTID=one",  // as if the host ids that --share-gpu sets were missing
            75,
            {"NCCL failed: invalid usage", "Duplicate GPU", "NCCL_HOSTID"}}}) {
    SCOPED_TRACE(one.environment);
    const Place place;
    expect_one_sentence(run(place, one.ranks, kCuda + one.arguments, one.environment), one.exit_code,
                        one.words);
    EXPECT_EQ(place.contents().empty(), one.exit_code != kPeerLost);  // which is found under way
  }
}

TEST(CudaBadInput, NcclFailingInTheMiddleNamesTheRank) {
  const Place place;
  const Ended ended =
      run(place, 2, kCuda + "--iters 40 --comm nccl", "EMULATED_GPUS=2 EMULATED_NCCL_FAIL=1:3");
  EXPECT_EQ(ended.exit_code, kPeerLost);
  EXPECT_TRUE(says(ended, {"rank 1"}));
  expect_no_score(place);
}

// A collective that never ends: in the check of sums, then among the iterations. NCCL's error is told after 5
// s, before ranks would be called late.
TEST(CudaBadInput, NcclThatStallsIsNamedByItsOwnError) {
  for (const char* execution : {"0", "30"}) {
    const Place place;
    const Ended ended = run(place, 2, kCuda + "--iters 40 --comm nccl --timeout-s 12",
                            std::string("EMULATED_GPUS=2 EMULATED_NCCL_STALL=1:") + execution);
    EXPECT_EQ(ended.exit_code, kPeerLost) << execution;
    EXPECT_TRUE(
        says(ended, {"rank 1 on ", "NCCL failed: remote process exited or there was a network error"}))
        << execution;
    expect_no_score(place);
  }
}

// All ranks have entered the step, and nothing reports an error. Half the gradients' bytes are waited for
// half as long.
TEST(CudaBadInput, NcclThatHangsWithoutAnErrorIsNamed) {
  const Place place;
  const Ended ended = run(place, 2, kCuda + "--bf16 --iters 40 --comm nccl --timeout-s 2",
                          "EMULATED_GPUS=2 EMULATED_NCCL_HANG=1:30");
  expect_peer_lost(ended);
  expect_named(ended, {"iteration ", " has not ended on rank ", "although every rank has entered it"});
  expect_no_score(place, "has not ended on rank ");
}

// Replicas stay identical.
TEST(CudaBadInput, NcclThatSumsWronglyOnAllRanksAlikeIsFound) {
  const Place place;
  const Ended ended =
      run(place, 2, kCuda + "--iters 2 --comm nccl", "EMULATED_GPUS=2 EMULATED_NCCL_WRONG_SUMS=1");
  EXPECT_EQ(ended.exit_code, kVerificationFailed);
  EXPECT_TRUE(says(ended, {" f32 over nccl) is wrong on rank ", "instead of"}))
      << testing::PrintToString(ended.lines);
  expect_no_score(place, "is wrong on rank ");
}

// In a replayed graph, where no call of ours is under way. With ThreadSanitizer a step takes 7 s.
TEST(CudaBadInput, ARankThatIsLostInACapturedStepIsNamed) {
  for (const int signal : {SIGSTOP, SIGKILL}) {
    const Place place;
    const std::string timeout = std::string(PLUMB_TEST_SANITIZERS) == "thread" ? "40" : "4";
    const std::string arguments = kCuda + "--comm nccl --lr 0.001 --iters 100000 --timeout-s " + timeout;
    StartedProgram program = place.start(Place::mpirun(2, place.resnet50(arguments)),
                                         "EMULATED_GPUS=2 OMPI_MCA_odls_base_sigkill_timeout=2");
    wait_for_lines(place, program);
    program.send(1, signal);
    const Ended ended = program.wait();
    expect_peer_lost(ended);
    expect_named(ended, {"rank 1 on ", signal == SIGKILL ? "is gone" : "has sent nothing for "});
    expect_all_gone(program);
    expect_no_score(place, "rank 1 on ");
  }
}

TEST(CudaBadInput, AGpuThatOnlyOneRankHas) {
  const Place place;
  const std::string command = place.resnet50(kSmallImages + "--no-autotune --comm mpi --cuda-graph off");
  const std::string without = Place::mpirun(1, "env EMULATED_GPUS=0 " + command);
  const Ended ended = place.run(without + " : -np 1 " + command, "EMULATED_GPUS=2");
  EXPECT_EQ(ended.exit_code, 64);
  EXPECT_TRUE(says(ended, {"rank ", "has device kind=", "where the others have device kind="}))
      << testing::PrintToString(ended.lines);
  EXPECT_TRUE(place.contents().empty());
}

}  // namespace
}  // namespace plumb
