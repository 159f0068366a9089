// What tuning remembers for later runs.
#include <cstdlib>

#include "tests/cuda_host/instruction_tuning.h"

namespace plumb::cuda {
namespace {

TEST_F(InstructionTuning, ANextRunTakesTheCacheAndTriesNothing) {
  convolutions.plain = {{.name = "slow", .seconds = 3}, {.name = "fast"}};
  TuningCache cache(folder_.path(), "gpu");
  const Tuning first = tune(true, &cache);
  convolutions.counts = {};
  TuningCache next(folder_.path(), "gpu");
  const Tuning second = tune(true, &next);
  EXPECT_EQ(convolutions.counts.run, 0);
  EXPECT_EQ(chosen(second), chosen(first));
}

TEST_F(InstructionTuning, AnEngineThatTheLibraryNoLongerHasIsTimedAgain) {
  convolutions.plain = {{.name = "old"}, {.name = "slow", .seconds = 3}};
  TuningCache cache(folder_.path(), "gpu");
  tune(true, &cache);
  convolutions.plain = {{.name = "slow", .seconds = 3}};
  EXPECT_EQ(chosen(tune(true, &cache)), (std::set<std::string>{"slow"}));
}

using InstructionTuningDeathTest = InstructionTuning;

// The emulated GPU stays lost to its process, like a real one.
TEST_F(InstructionTuningDeathTest, AnEngineThatPoisonsTheGpuEndsTheRunByName) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  convolutions.plain = {{.name = "poison", .poisons = true}, {.name = "good"}};
  const auto tune_and_look = [&] {
    std::string sentence;
    try {
      tune(true);
    } catch (const Error& error) {
      sentence = error.what();
    }
    std::exit(sentence.starts_with("engine poison for conv_") ? 0 : 1);
  };
  EXPECT_EXIT(tune_and_look(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace plumb::cuda
