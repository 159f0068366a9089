// What tuning chooses.
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "kernels/cuda/plan/norm_partition.h"
#include "kernels/device.h"
#include "tests/cuda_host/instruction_tuning.h"

namespace plumb::cuda {
namespace {

TEST_F(InstructionTuning, TakesTheFirstThatWorksWithoutTimingAndOnlyWhereEnginesAreFused) {
  convolutions.plain = {{.name = "plain"}};
  EXPECT_TRUE(tune(false).instructions.empty()) << "plain engines are planned, and not tried";
  EXPECT_EQ(convolutions.counts.run, 0);
  capability = 90;
  convolutions.fused = {{.name = "unbuildable", .builds = false},
                        {.name = "failing", .fails = true},
                        {.name = "good"},
                        {.name = "later"}};
  const Tuning tuning = tune(false);
  EXPECT_TRUE(tuning.plain.empty());
  ASSERT_FALSE(tuning.instructions.empty());
  for (const auto& [name, choice] : tuning.instructions) {
    EXPECT_EQ(choice.engine, "good") << name;
    EXPECT_FALSE(choice.seconds);
  }
}

TEST_F(InstructionTuning, FallsBackToPlainStepsWhereNoFusedEngineWorks) {
  capability = 90;
  convolutions.plain = {{.name = "plain"}};
  for (const std::vector<FakeEngine>& none :
       {std::vector<FakeEngine>{}, {{.name = "failing", .fails = true}}, {{.name = "x", .builds = false}}}) {
    convolutions.fused = none;
    const Tuning tuning = tune(false);
    ASSERT_FALSE(tuning.plain.empty());
    for (const PlainLayer& layer : tuning.plain) EXPECT_FALSE(layer.reason.empty());
    DescribeOptions options{.precision = Precision::fp16};
    options.plain = tuning.plain;
    const Graph graph = three_convolutions();
    const Program program = cuda::describe(graph, options, *find_target("h200"));
    for (const Instruction& instruction : program.instructions) {
      const auto problem = conv_problem(graph, program, instruction);
      EXPECT_FALSE(problem && is_fused(*problem)) << instruction.name;
    }
  }
}

TEST_F(InstructionTuning, TakesTheFastestAndPassesOverEnginesThatFail) {
  convolutions.plain = {{.name = "slow", .seconds = 5},
                        {.name = "unbuildable", .builds = false},
                        {.name = "failing", .fails = true},
                        {.name = "fast"}};
  const Tuning tuning = tune(true);
  EXPECT_EQ(chosen(tuning), (std::set<std::string>{"fast"}));
  for (const auto& [problem, trials] : tuning.trials) {
    if (!problem.starts_with("conv_")) continue;
    ASSERT_EQ(trials.size(), 3U) << problem;
    EXPECT_EQ(trials[1].engine, "slow");
    EXPECT_EQ(trials[2].failure, "the engine refused");
  }
}

// Layer by layer, with a reason.
TEST_F(InstructionTuning, StoresTheOutputOfABlocksConvolutionWhoseProductsHaveNoRoom) {
  GraphBuilder builder({1, 6, 6, 64});
  ValueId value = builder.bottleneck(GraphBuilder::kImages, 64, 1);
  value = builder.bottleneck(value, 64, 1);
  graph_ = builder.classify(builder.bottleneck(value, 128, 1));
  convolutions.plain = {{.name = "plain", .seconds = 1000}};
  const auto ends = [&](bool time_engines) {
    DescribeOptions options{.precision = precision};
    options.plain = tune(time_engines).plain;
    for (const PlainLayer& layer : options.plain) {
      EXPECT_NE(layer.reason.find("fake cannot multiply"), std::string::npos) << layer.reason;
      EXPECT_EQ(layer.reason.find("--fp32"), std::string::npos) << layer.reason;
    }
    const Program program = cuda::describe(graph_, options, limits());
    return std::ranges::count_if(program.instructions, [](const Instruction& instruction) {
      return instruction.as<BlockEndForward>() != nullptr;
    });
  };
  products_ = large_products([](const GemmProblem& problem) -> std::size_t {
    return problem.makes_mask && problem.n == 512 ? std::size_t{1} << 40 : 0;
  });
  for (const auto& [of, capability_of] :
       {std::pair{Precision::fp16, 75}, {Precision::tf32, 80}, {Precision::fp32, 90}})
    for (const bool time_engines : {false, true}) {
      precision = of, capability = capability_of;
      EXPECT_EQ(ends(time_engines), 2) << name_of(precision);
    }
}

TEST_F(InstructionTuning, AGradientThatIsAddedToAnotherIsAProblemOfItsOwn) {
  TuningCache none("", "");
  const InstructionTuner tuner = make_tuner({}, none);
  const Program program = cuda::describe(graph_, {.precision = precision}, limits());
  int norms = 0;
  for (Instruction instruction : program.instructions) {
    auto* const norm = std::get_if<BatchNormBackward>(&instruction.operation);
    if (!norm) continue;
    const std::string alone = tuner.problem_of(program, instruction);
    norm->d_in.adds = !norm->d_in.adds;
    EXPECT_NE(tuner.problem_of(program, instruction), alone);
    ++norms;
  }
  EXPECT_GT(norms, 0);
}

TEST_F(InstructionTuning, SaysHowManyProblemsAreDone) {
  convolutions.plain = {{.name = "plain"}};
  std::vector<std::size_t> done, known;
  progress = [&](std::size_t problems, std::size_t of) {
    done.push_back(problems);
    known.push_back(of);
  };
  const std::size_t problems = tune(true).trials.size();
  std::vector<std::size_t> each(problems);
  std::iota(each.begin(), each.end(), 1);
  EXPECT_EQ(done, each);
  EXPECT_EQ(known, std::vector(problems, problems));
}

TEST_F(InstructionTuning, GivesFusedEnginesUpWhereTheyAreSlow) {
  capability = 90;
  convolutions.plain = {{.name = "plain"}};
  convolutions.fused = {{.name = "fused", .seconds = 30}};
  const Tuning tuning = tune(true);
  ASSERT_FALSE(tuning.plain.empty());
  EXPECT_NE(tuning.plain.front().reason.find("ms faster"), std::string::npos);
  EXPECT_EQ(chosen(tuning), (std::set<std::string>{"plain"}));
}

TEST_F(InstructionTuning, OtherRanksReadTheSameChoices) {
  capability = 90;
  convolutions.plain = {{.name = "plain"}};
  convolutions.fused = {{.name = "fused", .seconds = 30}};
  const Tuning tuning = tune(true), told = choices_from_json(choices_to_json(tuning));
  EXPECT_EQ(chosen(told), chosen(tuning));
  EXPECT_EQ(told.plain.size(), tuning.plain.size());
}

TEST_F(InstructionTuning, TheTableOfTrialsMarksWhatTheRunUses) {
  capability = 90;
  convolutions.plain = {{.name = "slow", .seconds = 3}, {.name = "fast"}};
  convolutions.fused = {{.name = "fused", .seconds = 30}};
  std::istringstream lines(trials_csv(tune(true)));
  std::set<std::string> marked;
  for (std::string line; std::getline(lines, line);)
    for (const char* engine : {"slow", "fast", "fused"})
      if (line.ends_with(",1") && line.find(std::string("\",\"") + engine) != std::string::npos)
        marked.insert(engine);
  EXPECT_EQ(marked, std::set<std::string>{"fast"}) << "fused engines lost, so that nothing runs them";
}

}  // namespace
}  // namespace plumb::cuda
