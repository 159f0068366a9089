// The simulator on steps whose times can be worked out by hand.
#include "results/simulation/simulator.h"

#include <gtest/gtest.h>

#include "results/simulation/collective_cost.h"
#include "tests/bench/expect_error.h"
#include "tests/results/simulated_program.h"

namespace plumb {
namespace {

constexpr double kMiB = 1 << 20;

// Seconds per MiB, whatever the number of ranks.
SimulatedStep with_speed(const StepModel& step, double seconds_per_mib, double latency = 0) {
  return simulate(step,
                  [&](const StepCollective& one) { return latency + one.bytes / kMiB * seconds_per_mib; });
}

TEST(StepModel, TakesGradientsAndTimesFromProgramAndProfile) {
  const StepModel step = two_layer_step();
  EXPECT_DOUBLE_EQ(step.seconds(), 7);
  ASSERT_EQ(step.collectives.size(), 2U);
  EXPECT_EQ(step.collectives[0].name, "bucket0.allreduce");
  EXPECT_EQ(step.collectives[0].bytes, 8 * kMiB);
  EXPECT_EQ(step.collectives[0].after, 3U);  // behind b.backward
  EXPECT_EQ(step.collectives[0].before, 5U);
  EXPECT_EQ(step.collectives[1].after, 4U);
  EXPECT_EQ(step.collectives[1].before, 4U);
}

TEST(StepModel, CollectivesOfAProgramStandWhereTheProgramHasThem) {
  nlohmann::ordered_json program = two_layer_program();
  for (const int gradient : {1, 2}) program["buffers"][gradient]["view"] = {{"of", 3}, {"offset", 0}};
  program["buffers"].push_back(
      {{"name", "bucket0"}, {"role", "gradient"}, {"dtype", "f32"}, {"bytes", 10 << 20}});
  const nlohmann::ordered_json collective{
      {"name", "bucket0.allreduce"},
      {"phase", "reduce"},
      {"lane", "communication"},
      {"uses", nlohmann::ordered_json::array()},
      {"collective", {{"kind", "allreduce_sum"}, {"buffer", 3}, {"elements", 10 << 18}, {"dtype", "f32"}}}};
  program["ops"].insert(program["ops"].begin() + 4, collective);
  const StepModel step = step_model(program, std::vector<double>{1, 1, 2, 2, 9, 0.5, 0.5}, "program.json");
  EXPECT_DOUBLE_EQ(step.seconds(), 7);
  ASSERT_EQ(step.collectives.size(), 1U);
  EXPECT_EQ(step.collectives[0].bytes, 10 * kMiB);
  EXPECT_EQ(step.collectives[0].after, 4U);
  EXPECT_EQ(step.collectives[0].before, 4U);
  EXPECT_EQ(with_buckets(step, {.last_bucket_bytes = 2 << 20, .bucket_bytes = 8 << 20}).collectives.size(),
            2U);
}

TEST(StepModel, AProfileOfAnotherProgramIsRefused) {
  const auto refused = [](const std::vector<std::string>& words, const nlohmann::ordered_json& profile) {
    expect_error(ExitCode::bad_data, words,
                 [&] { profiled_seconds(two_layer_program(), profile, "profile.json"); });
  };
  nlohmann::ordered_json profile = two_layer_profile();
  profile["ops"][2]["name"] = "c.backward";
  refused({"another program", "--profile"}, profile);
  profile = two_layer_profile();
  profile["ops"].erase(5);
  refused({"another program"}, profile);
  profile = two_layer_profile();
  profile["ops"].push_back(profile["ops"][0]);
  refused({"another program"}, profile);
  profile = two_layer_profile();
  profile["ops"][0]["seconds"] = -1;
  refused({"seconds", "expected a time"}, profile);
}

TEST(StepModel, KnowsClassCentresThatRanksShareOut) {
  nlohmann::ordered_json program = two_layer_program();
  EXPECT_FALSE(step_model(program, std::vector<double>(6, 1), "program.json").sharded);
  program["buffers"][1]["sharded"] = true;
  EXPECT_TRUE(step_model(program, std::vector<double>(6, 1), "program.json").sharded);
}

TEST(StepModel, GradientsMayBeSentInHalfTheirBytes) {
  const StepModel half =
      with_buckets(two_layer_step(), {.last_bucket_bytes = 2 << 20, .bucket_bytes = 8 << 20}, 2);
  EXPECT_EQ(half.collectives[0].bytes, 4 * kMiB);
}

TEST(Simulator, AStepWithoutCommunicationTakesItsComputeTime) {
  const SimulatedStep step = with_speed(two_layer_step(), 0);
  EXPECT_DOUBLE_EQ(step.seconds, 7);
  EXPECT_EQ(step.exposed_seconds, 0);
}

TEST(Simulator, OneBucketBehindBackwardIsFullyExposed) {
  StepModel step = with_buckets(two_layer_step(), {.last_bucket_bytes = 16 << 20, .bucket_bytes = 16 << 20});
  ASSERT_EQ(step.collectives.size(), 1U);
  const SimulatedStep simulated = with_speed(step, 0.25);  // 10 MiB: 2.5 s
  EXPECT_DOUBLE_EQ(simulated.seconds, 9.5);
  EXPECT_DOUBLE_EQ(simulated.exposed_seconds, 2.5);
  EXPECT_DOUBLE_EQ(simulated.collectives[0].ready, 6);
  EXPECT_DOUBLE_EQ(simulated.collectives[0].exposed, 2.5);
}

TEST(Simulator, ABucketThatEndsWithBackwardCostsNothing) {
  StepModel step = two_layer_step();
  step.collectives.pop_back();
  const SimulatedStep simulated = with_speed(step, 0.25);  // 8 MiB in the 2 s of a.backward
  EXPECT_DOUBLE_EQ(simulated.collectives[0].end, 6);
  EXPECT_DOUBLE_EQ(simulated.seconds, 7);
  EXPECT_EQ(simulated.exposed_seconds, 0);
}

TEST(Simulator, BucketsQueueAndTheWaitIsSharedOutByWhoRuns) {
  const SimulatedStep simulated = with_speed(two_layer_step(), 0.5);  // 4 s and 1 s
  EXPECT_DOUBLE_EQ(simulated.collectives[0].start, 4);
  EXPECT_DOUBLE_EQ(simulated.collectives[1].ready, 6);
  EXPECT_DOUBLE_EQ(simulated.collectives[1].start, 8);  // behind the first
  EXPECT_DOUBLE_EQ(simulated.collectives[0].exposed, 2);
  EXPECT_DOUBLE_EQ(simulated.collectives[1].exposed, 1);
  EXPECT_DOUBLE_EQ(simulated.exposed_seconds, 3);
  EXPECT_DOUBLE_EQ(simulated.seconds, 10);
}

TEST(Simulator, AnUpdateThatNeedsAnEarlierBucketDoesNotWaitForALaterOne) {
  StepModel step = two_layer_step();
  step.collectives[1].before = 5;  // now both updates need what is sent last only at the end
  step.collectives[0].before = 4;
  const SimulatedStep simulated = with_speed(step, 0.25);  // 2 s until 6, then 0.5 s until 6.5
  EXPECT_DOUBLE_EQ(simulated.seconds, 7);
  EXPECT_EQ(simulated.exposed_seconds, 0);
}

TEST(Simulator, LatencyAloneIsPaidPerBucket) {
  const SimulatedStep simulated = with_speed(two_layer_step(), 0, 3);  // 4 … 7 … 10
  EXPECT_DOUBLE_EQ(simulated.exposed_seconds, 4);
  EXPECT_DOUBLE_EQ(simulated.seconds, 11);
}

TEST(Simulator, ExpectedMaximaAreThoseOfTheTables) {
  // Teichroew 1956, as scaling models quote them.
  EXPECT_EQ(expected_maximum(1), 0);
  EXPECT_NEAR(expected_maximum(2), 0.56419, 1e-5);
  EXPECT_NEAR(expected_maximum(8), 1.42360, 1e-5);
  EXPECT_NEAR(expected_maximum(16), 1.76599, 1e-5);
  EXPECT_NEAR(expected_maximum(32), 2.06967, 1e-4);
  EXPECT_NEAR(expected_maximum(1000), 3.24144, 1e-4);
}

}  // namespace
}  // namespace plumb
