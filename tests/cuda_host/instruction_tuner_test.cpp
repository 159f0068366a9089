// Tuning on the emulated GPU: good and bad engines of every kind, behind cuDNN's interface.
#include "kernels/cuda/instruction_tuner.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>
#include <stdexcept>

#include "base/error.h"
#include "kernels/cuda/conv.h"
#include "kernels/cuda/norm_partition.h"
#include "tests/cuda_host/emulated/block.h"
#include "tests/cuda_host/guarded_tensor.h"
#include "tests/cuda_host/runtime_state.h"
#include "tests/kernels/graph_builder.h"
#include "tests/scratch_folder.h"

namespace plumb::cuda {
namespace {

using gpu::emulated::enqueue;
using gpu::emulated::once;

// Behaviour of a test engine when run.
struct FakeEngine {
  std::string name;
  std::uint64_t seconds = 0;  // by the emulated clock, so that a busy machine changes no order
  bool builds = true;
  bool fails = false;    // reports an error, nothing else
  bool waits = false;    // for the stream, which a capture forbids
  bool poisons = false;  // makes every later call fail
  std::size_t workspace_bytes = 64;
};

struct Counts {
  int listed = 0, run = 0;
};

class FakePlan final : public ConvPlan {
 public:
  FakePlan(const FakeEngine& engine, Counts& counts) : engine_(engine), counts_(counts) {}
  std::size_t workspace_bytes() const override { return engine_.workspace_bytes; }
  std::string engine() const override { return engine_.name; }
  void run(cudaStream_t stream, std::span<std::byte* const>, std::byte* workspace) const override {
    ++counts_.run;
    if (engine_.fails) throw Error(ExitCode::internal, "the engine refused");
    if (engine_.waits) check(cudaStreamSynchronize(stream));
    const cudaError_t status = enqueue(stream, once([engine = engine_, workspace] {
                                         if (engine.poisons) throw std::runtime_error("illegal address");
                                         workspace[0] = std::byte{1};
                                         gpu::emulated::skip_time(engine.seconds * 1'000'000'000);
                                       }));
    check(status);
  }

 private:
  FakeEngine engine_;
  Counts& counts_;
};

class FakeCandidates final : public ConvCandidates {
 public:
  FakeCandidates(const std::vector<FakeEngine>& engines, Counts& counts)
      : engines_(engines), counts_(counts) {}
  std::size_t size() const override { return engines_.size(); }
  std::string engine(std::size_t i) const override { return engines_.at(i).name; }
  std::unique_ptr<ConvPlan> build(std::size_t i) override {
    if (!engines_.at(i).builds) return nullptr;
    return std::make_unique<FakePlan>(engines_.at(i), counts_);
  }

 private:
  std::vector<FakeEngine> engines_;
  Counts& counts_;
};

class FakeConvolutions final : public ConvEngine {
 public:
  std::vector<FakeEngine> plain, fused;
  Counts counts;
  std::string library() const override { return "fake"; }
  std::unique_ptr<ConvCandidates> candidates(const ConvProblem& problem, std::size_t) override {
    ++counts.listed;
    return std::make_unique<FakeCandidates>(is_fused(problem) ? fused : plain, counts);
  }
};

// All three compute statistics, two also normalise their inputs.
Graph three_convolutions() {
  GraphBuilder builder({2, 6, 6, 16});
  ValueId value = GraphBuilder::kImages;
  for (const int kernel : {3, 1, 3})
    value =
        builder.norm(builder.conv(value, 16, {.kernel = kernel, .padding = kernel / 2}), Activation::relu);
  return builder.classify(value);
}

class InstructionTuning : public testing::Test {
 protected:
  Tuning tune(bool time_engines, TuningCache* cache = nullptr) {
    const TuningOptions how{.time_engines = time_engines, .captures = captures, .progress = progress};
    InstructionTuner tuner = make_tuner(how, cache);
    return tune_instructions(tuner, graph_, {.precision = precision}, limits(), how);
  }
  InstructionTuner make_tuner(const TuningOptions& how, TuningCache* cache = nullptr) {
    return {{.convolutions = convolutions, .products = *products_, .stream = stream_.get()},
            graph_,
            rule_,
            how,
            cache};
  }
  DeviceLimits limits() const {
    DeviceLimits limits = *find_target("h200");
    limits.compute_capability = capability;
    return limits;
  }
  // Engines of all trials on plain or fused convolutions.
  static std::set<std::string> chosen(const EngineChoices& tuning) {
    std::set<std::string> engines;
    for (const auto& [name, choice] : tuning.instructions)
      if (name.ends_with("backward_weights") || name.ends_with("backward_data"))
        engines.insert(choice.engine);
    return engines;
  }

  FakeConvolutions convolutions;
  Graph graph_ = three_convolutions();
  Precision precision = Precision::fp16;
  int capability = 75;  // no fused engines
  bool captures = true;
  std::function<void(std::size_t, std::size_t)> progress;
  const ScratchFolder folder_;

 private:
  const UpdateRule rule_;
  const std::unique_ptr<GemmEngine> products_ = make_gemm_engine();
  const Stream stream_ = make_stream();
};

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

TEST_F(InstructionTuning, PassesOverEnginesThatCannotBeCaptured) {
  convolutions.plain = {
      {.name = "slow", .seconds = 10}, {.name = "waiting", .waits = true}, {.name = "good", .seconds = 5}};
  const Tuning tuning = tune(true);
  EXPECT_EQ(chosen(tuning), (std::set<std::string>{"good"}));
  for (const auto& [problem, trials] : tuning.trials) {
    if (!problem.starts_with("conv_")) continue;
    EXPECT_TRUE(trials.back().failure.starts_with("can't be captured in a CUDA graph: "))
        << trials.back().failure;
    EXPECT_FALSE(trials.back().seconds);
  }
  captures = false;
  EXPECT_EQ(chosen(tune(true)), (std::set<std::string>{"waiting"}));
  capability = 90;
  convolutions.fused = {{.name = "waiting", .waits = true}, {.name = "good"}};
  for (const bool must : {true, false}) {
    captures = must;
    EXPECT_EQ(chosen(tune(false)), (std::set<std::string>{must ? "good" : "waiting"}));
  }
}

TEST_F(InstructionTuning, TimesAgainWhatARunWithoutAGraphRemembered) {
  convolutions.plain = {{.name = "waiting", .waits = true}, {.name = "good", .seconds = 5}};
  TuningCache cache(folder_ / "tuning.json", "gpu");
  captures = false;
  EXPECT_EQ(chosen(tune(true, &cache)), (std::set<std::string>{"waiting"}));
  for (const bool must : {true, false}) {
    captures = must;
    EXPECT_EQ(chosen(tune(true, &cache)), (std::set<std::string>{"good"}));
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

TEST_F(InstructionTuning, KnowsTheChoicesThatTakeTheLeastMemory) {
  capability = 90;
  convolutions.plain = {{.name = "first", .seconds = 5, .workspace_bytes = 1 << 20},
                        {.name = "large", .workspace_bytes = 2 << 20},
                        {.name = "never captured", .seconds = 5, .waits = true, .workspace_bytes = 0}};
  convolutions.fused = {{.name = "fused", .seconds = 30}};
  const Tuning tuning = tune(true);
  ASSERT_FALSE(tuning.plain.empty());
  EXPECT_EQ(chosen(tuning), (std::set<std::string>{"large"}));
  const Tuning told = choices_from_json(choices_to_json(tuning));
  EXPECT_EQ(chosen(told), chosen(tuning));
  ASSERT_TRUE(told.smallest);
  EXPECT_TRUE(told.smallest->plain.empty());
  EXPECT_EQ(chosen(*told.smallest), (std::set<std::string>{"first", "fused"}));
  convolutions.fused = {{.name = "failing", .fails = true}};
  EXPECT_FALSE(tune(true).smallest.value().plain.empty()) << "what fails is no choice";
  EXPECT_FALSE(tune(false).smallest);
}

TEST_F(InstructionTuning, ANextRunTakesTheCacheAndTriesNothing) {
  convolutions.plain = {{.name = "slow", .seconds = 3}, {.name = "fast"}};
  TuningCache cache(folder_ / "tuning.json", "gpu");
  const Tuning first = tune(true, &cache);
  convolutions.counts = {};
  TuningCache next(folder_ / "tuning.json", "gpu");
  const Tuning second = tune(true, &next);
  EXPECT_EQ(convolutions.counts.run, 0);
  EXPECT_EQ(chosen(second), chosen(first));
}

TEST_F(InstructionTuning, RemembersNothingThatWasTriedWithoutRoom) {
  convolutions.plain = {{.name = "engine"}};
  TuningCache cache(folder_ / "tuning.json", "gpu");
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total));
  {
    const DeviceMemory taken = allocate_device(free - 4096);
    const Tuning tuning = tune(true, &cache);
    ASSERT_FALSE(tuning.trials.empty());
    for (const auto& [problem, trials] : tuning.trials)
      EXPECT_EQ(trials.front().failure, "no memory was left to try it") << problem;
  }
  convolutions.counts = {};
  TuningCache next(folder_ / "tuning.json", "gpu");
  tune(true, &next);
  EXPECT_GT(convolutions.counts.run, 0);
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

TEST_F(InstructionTuning, AnEngineThatTheLibraryNoLongerHasIsTimedAgain) {
  convolutions.plain = {{.name = "old"}, {.name = "slow", .seconds = 3}};
  TuningCache cache(folder_ / "tuning.json", "gpu");
  tune(true, &cache);
  convolutions.plain = {{.name = "slow", .seconds = 3}};
  const Tuning again = tune(true, &cache);
  EXPECT_EQ(chosen(again), (std::set<std::string>{"slow"}));
  ASSERT_EQ(again.remarks.size(), 1U);
  EXPECT_NE(again.remarks.front().find("engine old"), std::string::npos) << again.remarks.front();
}

TEST_F(InstructionTuning, AKernelOfOursThatCameLaterIsTimedToo) {
  convolutions.plain = {{.name = "library's", .seconds = 3}};
  TuningCache cache(folder_ / "tuning.json", "gpu");
  tune(true, &cache);
  convolutions.plain.insert(convolutions.plain.begin(), {.name = kOwnKernel, .seconds = 1});
  EXPECT_EQ(chosen(tune(true, &cache)), std::set<std::string>{kOwnKernel});
  convolutions.counts = {};
  EXPECT_EQ(chosen(tune(true, &cache)), std::set<std::string>{kOwnKernel});
  EXPECT_EQ(convolutions.counts.run, 0) << "it is in the cache";
}

TEST_F(InstructionTuning, AKernelOfOursThatChangedIsTimedAgain) {
  convolutions.plain = {{.name = kOwnKernel, .seconds = 1}, {.name = "library's", .seconds = 3}};
  const auto file = folder_ / "tuning.json";
  TuningCache cache(file, "gpu");
  EXPECT_EQ(chosen(tune(true, &cache)), std::set<std::string>{kOwnKernel});
  auto json = nlohmann::json::parse(std::ifstream(file));
  for (auto& trials : json.at("environments").at("gpu"))
    for (auto& trial : trials)
      if (trial.at("engine") == kOwnKernel) trial["version"] = kOwnKernelsVersion - 1;
  std::ofstream(file) << json;
  convolutions.plain.front().seconds = 5;
  TuningCache next(file, "gpu");
  EXPECT_EQ(chosen(tune(true, &next)), std::set<std::string>{"library's"});
}

using InstructionTuningDeathTest = InstructionTuning;

// The emulated GPU stays lost to its process, like a real one.
TEST_F(InstructionTuningDeathTest, AnEngineThatPoisonsTheGpuEndsTheRunByNameAndIsRemembered) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  convolutions.plain = {{.name = "poison", .poisons = true}, {.name = "good"}};
  const auto file = folder_ / "tuning.json";
  const auto tune_and_look = [&] {
    std::string sentence;
    try {
      TuningCache cache(file, "gpu");
      tune(true, &cache);
    } catch (const Error& error) {
      sentence = error.what();
    }
    std::ostringstream remembered;
    remembered << std::ifstream(file).rdbuf();
    const bool named =
        sentence.starts_with("engine poison for conv_") && sentence.find("start again") != std::string::npos;
    std::exit(named && remembered.str().find("poison") != std::string::npos ? 0 : 1);
  };
  EXPECT_EXIT(tune_and_look(), testing::ExitedWithCode(0), "");
}

TEST_F(InstructionTuning, AnEngineThatOncePoisonedTheGpuIsLeftOut) {
  convolutions.plain = {{.name = "good"}};
  TuningCache cache(folder_ / "tuning.json", "gpu");
  for (const auto& [problem, trials] : tune(true).trials)
    if (problem.starts_with("conv_"))
      cache.remember(problem, {{.engine = "poison", .failure = "left the GPU unusable"}});
  convolutions.plain = {{.name = "poison", .poisons = true}, {.name = "good"}};
  EXPECT_EQ(chosen(tune(true, &cache)), (std::set<std::string>{"good"}));
}

}  // namespace
}  // namespace plumb::cuda
