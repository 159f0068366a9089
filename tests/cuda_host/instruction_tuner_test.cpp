// What tuning chooses.
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "kernels/cuda/plan/norm_partition.h"
#include "kernels/cuda/written_results.h"
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

// Its place in the list doesn't matter, nor that it would be the fastest.
TEST_F(InstructionTuning, PassesOverAnOwnKernelThatComputesOtherValues) {
  const FakeEngine library{.name = "library", .seconds = 5}, other{.name = "other", .seconds = 7};
  for (const bool wrong : {true, false}) {
    const FakeEngine own{.name = kOwnKernel, .wrong = wrong};
    for (const std::vector<FakeEngine>& engines : {std::vector{own, library, other}, {library, own, other}}) {
      convolutions.plain = engines;
      const Tuning tuning = tune(true);
      EXPECT_EQ(chosen(tuning), (std::set<std::string>{wrong ? "library" : kOwnKernel}));
      EXPECT_EQ(tuning.remarks.empty(), !wrong);
      for (const auto& [problem, trials] : tuning.trials) {
        if (!problem.starts_with("conv_")) continue;
        ASSERT_EQ(trials.size(), 3U) << problem;
        if (!wrong) continue;
        const std::string& failure = trials.back().failure;
        EXPECT_TRUE(failure.starts_with("computes other values than library: ")) << failure;
        EXPECT_NE(failure.find("[5] is 2 instead of "), std::string::npos) << failure;
        EXPECT_FALSE(trials.back().seconds);
      }
    }
  }
  convolutions.plain = {{.name = kOwnKernel, .wrong = true}};
  EXPECT_EQ(chosen(tune(true)), (std::set<std::string>{kOwnKernel})) << "with nothing to compare it with";
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
    return problem.mask == ProductMask::makes && problem.n == 512 ? std::size_t{1} << 40 : 0;
  });
  for (const auto& [of, capability_of] :
       {std::pair{Precision::fp16, 75}, {Precision::tf32, 80}, {Precision::fp32, 90}})
    for (const bool time_engines : {false, true}) {
      precision = of, capability = capability_of;
      EXPECT_EQ(ends(time_engines), 2) << name_of(precision);
    }
}

// Where the GPU has products of warpgroups, a block's end with 256 inputs has two kernels of ours.
TEST_F(InstructionTuning, ComparesBothKernelsOfABlocksEnd) {
  GraphBuilder builder({3, 5, 5, 64});
  ValueId value = builder.bottleneck(GraphBuilder::kImages, 256, 1);
  graph_ = builder.classify(builder.bottleneck(value, 256, 1));
  convolutions.plain = {{.name = "plain", .seconds = 1}};
  capability = 90;
  for (const Precision in : {Precision::fp16, Precision::bf16})
    for (const int multiprocessors : {0, 8}) {
      precision = in, warpgroup_multiprocessors = multiprocessors;
      int ends = 0, walked = 0;
      for (const auto& [problem, trials] : tune(true).trials) {
        if (!problem.starts_with("block_end_")) continue;
        ++ends;
        for (const EngineTrial& trial : trials) {
          walked += trial.engine == kOwnWarpgroupKernel;
          EXPECT_EQ(trial.failure, "") << trial.engine << " for " << problem;
          EXPECT_TRUE(trial.seconds) << trial.engine << " for " << problem;
        }
      }
      EXPECT_EQ(ends, 5) << "an input, a norm or a product as the shortcut; gradients of 256 and 64 inputs";
      EXPECT_EQ(walked, multiprocessors > 0 ? 2 : 0) << "an input as the shortcut; a gradient of 256 inputs";
    }
}

// What sums that are almost 0 explain, and no more.
TEST(WrittenResults, DifferInOneOfAThousandBytesOfAMask) {
  const WrittenOperand mask{.name = "mask",
                            .dtype = DType::u8,
                            .row = 2000,
                            .at = std::vector<std::int64_t>(2000),
                            .values = std::vector<float>(2000, 7)};
  const WrittenResults expected{.engine = "one", .operands = {mask}};
  for (const int others : {0, 2, 3}) {
    WrittenResults made = expected;
    std::fill_n(made.operands[0].values.begin(), others, 6.0F);
    EXPECT_EQ(difference(made, expected, {.count = 64, .dtype = DType::f16}),
              others > 2 ? "more than a thousandth of mask's bytes differ" : "");
  }
}

TEST_F(InstructionTuning, TimesNormsInTheLayoutOfTheRun) {
  const Shape shape{.n = 8, .h = 32, .w = 32, .c = 16};
  GraphBuilder builder(shape);
  graph_ = builder.classify(builder.norm(builder.conv(GraphBuilder::kImages, shape.c, {}), Activation::relu));
  convolutions.plain = {{.name = "plain"}};
  precision = Precision::fp32;
  int norms = 0;
  for (const auto& [problem, trials] : tune(true).trials) {
    if (problem.starts_with("conv_") || trials.front().workspace_bytes == 0) continue;
    EXPECT_EQ(trials.front().workspace_bytes,
              NormWorkspace{}.bytes(partition_norm(shape, TensorLayout::nchw)))
        << problem;
    EXPECT_NE(problem.find(" nchw "), std::string::npos) << problem;
    ++norms;
  }
  EXPECT_EQ(norms, 2) << "forward and backward";
}

TEST_F(InstructionTuning, AGradientThatIsAddedToAnotherIsAProblemOfItsOwn) {
  const TuningOptions how;
  const InstructionTuner tuner = make_tuner(how);
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

// Our own kernels and the library's engines, both as they are: nothing is called different that isn't.
TEST_F(InstructionTuning, OwnKernelsComputeWhatTheLibraryDoes) {
  setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  GraphBuilder b({2, 18, 18, 3});
  ValueId out =
      b.norm(b.conv(GraphBuilder::kImages, 64, {.kernel = 7, .stride = 2, .padding = 3}), Activation::relu);
  for (int i = 0; i < 2; ++i) out = b.norm(b.conv(out, 64, {.kernel = 3, .padding = 1}), Activation::relu);
  const Graph graph = b.classify(out);
  std::set<std::string> own;  // instructions
  for (const Precision in : {Precision::fp16, Precision::bf16}) {
    const auto device = make_device({.choice = DeviceChoice::cuda});
    const Tuning tuning = device->tune(graph, {}, {.precision = in}, {.time_engines = true});
    for (const auto& [problem, trials] : tuning.trials)
      for (const EngineTrial& trial : trials) {
        if (!problem.starts_with("conv_") || trial.engine != kOwnKernel) continue;
        EXPECT_EQ(trial.failure, "") << problem;
        own.insert(problem.substr(0, problem.find(' ')) + problem.substr(problem.find(", kernel ")));
      }
  }
  unsetenv("XDG_CACHE_HOME");
  for (const char* problem : {"conv_forward, kernel 3, stride 1, padding 1, f16, gathers statistics",
                              "conv_forward, kernel 3, stride 1, padding 1, bf16",
                              "conv_backward_data, kernel 3, stride 1, padding 1, f16",
                              "conv_norm_backward_data, kernel 3, stride 1, padding 1, f16",
                              "conv_forward, kernel 7, stride 2, padding 3, f16, gathers statistics",
                              "conv_backward_weights, kernel 7, stride 2, padding 3, bf16"})
    EXPECT_TRUE(own.contains(problem)) << problem;
}

}  // namespace
}  // namespace plumb::cuda
