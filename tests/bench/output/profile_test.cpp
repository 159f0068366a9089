#include "bench/output/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/text.h"
#include "results/record/profile.h"
#include "tests/bench/output/profiled_program.h"
#include "tests/golden_text.h"

namespace plumb {
namespace {

DeviceLimits a_device() {
  return {.name = "some gpu",
          .kind = DeviceKind::cuda,
          .flops_per_second = {{Precision::fp32, 1e12}, {Precision::fp16, 4e12}},
          .bytes_per_second = 1e11};
}

const ProfiledInstruction& of(const RunProfile& profile, InstructionId id) {
  return *std::ranges::find(profile.instructions, profiled_program().instructions[id].name,
                            &ProfiledInstruction::name);
}

RunProfile profile_of_three(const Program& program = profiled_program(),
                            std::optional<double> step_seconds = {}) {
  return make_profile(program, three_iterations(), a_device(), Precision::fp32, step_seconds);
}

TEST(Profile, CutsTimesIntoIterationsWhereAStepComesAgain) {
  const std::vector<InstructionTime> times = three_iterations();
  const auto iterations = split_iterations(times);
  ASSERT_EQ(iterations.size(), 3U);
  for (const auto& iteration : iterations) EXPECT_EQ(iteration.size(), 6U);
  EXPECT_EQ(iterations[1].front().instruction, 0U);
  EXPECT_TRUE(split_iterations({}).empty());
}

TEST(Profile, TakesTheIterationOfMiddleLength) {
  const RunProfile profile = profile_of_three();
  EXPECT_EQ(profile.iterations, 3);
  EXPECT_EQ(profile.averaged_iterations, 1);
  EXPECT_EQ(profile.instructions.size(), 6U);
  const ProfiledInstruction& conv = of(profile, kConv);
  EXPECT_NEAR(conv.seconds, 4e-3, 1e-9);
  EXPECT_NEAR(conv.min_seconds, 4e-3, 1e-9);
  EXPECT_NEAR(conv.max_seconds, 8e-3, 1e-9);
}

TEST(Profile, HoldsStepsAgainstTheRoofline) {
  const RunProfile profile = profile_of_three();
  const ProfiledInstruction& conv =
      of(profile, kConv);  // 1e9 MACs, 1e7 bytes: 2 ms of FLOPs, 0.1 ms of memory
  EXPECT_NEAR(conv.roofline_seconds, 2e-3, 1e-9);
  EXPECT_NEAR(conv.roofline_share, 0.5, 1e-6);
  EXPECT_NEAR(conv.flops_per_second, 5e11, 1e3);
  EXPECT_EQ(conv.bound_by, "compute");
  const ProfiledInstruction& norm = of(profile, kNorm);  // 1e8 bytes: 1 ms
  EXPECT_NEAR(norm.roofline_seconds, 1e-3, 1e-9);
  EXPECT_NEAR(norm.bytes_per_second, 5e10, 1e3);
  EXPECT_EQ(norm.bound_by, "bandwidth");
  EXPECT_EQ(of(profile, kUpdate).bound_by, "latency");
  EXPECT_EQ(of(profile, kAdvance).bound_by, "-");
  EXPECT_NEAR(make_profile(profiled_program(), three_iterations(), a_device(), Precision::fp16)
                  .instructions[kConv]
                  .roofline_seconds,
              0.5e-3, 1e-9);
}

TEST(Profile, FindsGapsOfTheComputeLaneOnly) {
  const RunProfile profile = profile_of_three();
  EXPECT_NEAR(profile.iteration_seconds, 8e-3, 1e-9);  // of 8, 8 and 12
  EXPECT_NEAR(profile.busy_seconds, 7e-3, 1e-9);
  EXPECT_NEAR(profile.gap_seconds, 1e-3, 1e-9);
  EXPECT_EQ(of(profile, kReduce).share, 0) << "it runs beside the compute lane";
  EXPECT_EQ(of(profile, kReduce).roofline_seconds, 0);
  double shares = 0;
  for (const ProfiledInstruction& instruction : profile.instructions) shares += instruction.share;
  EXPECT_NEAR(shares, 1, 1e-9);
}

TEST(Profile, AddsUpPhasesAndKinds) {
  const RunProfile profile = profile_of_three();
  ASSERT_EQ(profile.phases.size(), 3U);
  EXPECT_EQ(profile.phases[0].name, "forward");
  EXPECT_EQ(profile.phases[0].instructions, 1);
  EXPECT_EQ(profile.phases[1].name, "backward");
  double kinds = 0, rooflines = 0;
  for (const ProfiledKind& kind : profile.kinds) {
    kinds += kind.seconds;
    rooflines += kind.roofline_seconds;
  }
  EXPECT_NEAR(kinds, profile.busy_seconds, 1e-9);
  EXPECT_NEAR(rooflines, profile.roofline_seconds, 1e-9);
  EXPECT_TRUE(std::none_of(profile.kinds.begin(), profile.kinds.end(),
                           [](const ProfiledKind& kind) { return kind.name == "reduce"; }));
}

// Instructions whose times vary against each other: the sum of their medians is neither the median sum nor
// its mean.
TEST(Profile, EveryTimeIsAMeanOfTheSameIterationsSoThatAllAddsUp) {
  const Program program = profiled_program();
  std::mt19937 random(3);
  std::uniform_real_distribution<double> seconds(1e-3, 9e-3);
  std::vector<InstructionTime> times;
  double now = 0;
  for (int iteration = 0; iteration < 10; ++iteration)
    for (InstructionId id = 0; id < program.instructions.size(); ++id) {
      const double begin = now + seconds(random) / 10;
      now = begin + seconds(random);
      times.push_back({.instruction = id, .begin = begin, .end = now});
    }
  const RunProfile profile = make_profile(program, times, a_device(), Precision::fp32);
  EXPECT_EQ(profile.averaged_iterations, 4);
  double instructions = 0, phases = 0, kinds = 0;
  for (const ProfiledInstruction& instruction : profile.instructions)
    if (instruction.lane == kComputeLane) instructions += instruction.seconds;
  for (const ProfiledKind& phase : profile.phases) phases += phase.seconds;
  for (const ProfiledKind& kind : profile.kinds) kinds += kind.seconds;
  for (const double sum : {instructions, phases, kinds}) EXPECT_NEAR(sum, profile.busy_seconds, 1e-12);
  EXPECT_NEAR(profile.busy_seconds + profile.gap_seconds, profile.iteration_seconds, 1e-12);
}

TEST(Profile, JsonHasEveryStepByName) {
  const nlohmann::ordered_json json = profile_json(profile_of_three());
  EXPECT_EQ(json.at("format"), kProfileFormat);
  EXPECT_TRUE(json.at("run_step_seconds").is_null());
  ASSERT_EQ(json.at("ops").size(), 6U);
  const auto& conv = json.at("ops").at(kConv);
  EXPECT_EQ(conv.at("name"), "layer1.0.conv1.forward");
  EXPECT_EQ(conv.at("bound_by"), "compute");
  EXPECT_NEAR(conv.at("roofline_share").get<double>(), 0.5, 1e-6);
  EXPECT_EQ(json.at("phases").at(0).at("name"), "forward");
}

// The most lost first, and the rest in one row; engines where the device has them.
TEST(Profile, IsATableWithinAHundredColumns) {
  std::string text;
  const auto add = [&](const std::string& title, const RunProfile& profile, std::size_t most = 20) {
    const std::string table = profile_text(profile, most);
    for (const std::string& line : split(table, '\n')) EXPECT_LE(line.size(), 100U) << line;
    text += "== " + title + "\n" + table;
  };
  Program program = profiled_program();
  add("two ops", profile_of_three(program, 7.5e-3), 2);
  std::vector<InstructionTime> times = three_iterations();
  for (InstructionTime& time : times)
    if (time.instruction == kNorm) time.end = time.begin + 1e-4;  // 1 ms by its bytes: it was cached
  add("faster than memory", make_profile(program, times, a_device(), Precision::fp32));
  add("nothing", make_profile(program, {}, a_device(), Precision::fp32));
  program.instructions[kConv].engine = "eng47_k2=5_and_a_name_that_is_too_long_for_its_column";
  program.instructions[kConv].workspace_bytes = 3U << 20;
  program.instructions[kConv].tuned_seconds = 1.5e-3;
  program.instructions[kNorm].engine = "plumbline";
  add("engines", profile_of_three(program));
  expect_golden("tables/profile.txt", text);
  const auto conv = profile_json(profile_of_three(program)).at("ops").at(kConv);
  EXPECT_EQ(conv.at("engine"), program.instructions[kConv].engine);
  EXPECT_EQ(conv.at("workspace_bytes"), 3U << 20);
  EXPECT_EQ(conv.at("tuned_seconds"), 1.5e-3);
}

}  // namespace
}  // namespace plumb
