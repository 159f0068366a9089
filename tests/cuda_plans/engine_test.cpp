// What the engine promises beside a plan: numbers that keep their word, limits kept, failures in one
// sentence.
#include <cudnn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "absent_gpu.h"
#include "kernels/cuda/plan_cache.h"
#include "models/error.h"
#include "problems.h"
#include "tests/scratch_folder.h"

namespace plumb::cuda {
namespace {

ConvProblem small_problem(StepKind kind, DType dtype = DType::f32) {
  return {.kind = kind,
          .n = 32,
          .h = 14,
          .w = 14,
          .c = 256,
          .out_h = 14,
          .out_w = 14,
          .out_c = 256,
          .kernel = 3,
          .padding = 1,
          .dtype = dtype};
}

std::unique_ptr<ConvEngine> engine_of(const AbsentGpu& gpu) {
  return make_conv_engine({.device_properties_json = gpu.properties_json()});
}

TEST(ConvEngineForAnAbsentGpu, ChoosesOtherEnginesForStrictF32ThanForTf32) {
  for (const AbsentGpu& gpu : {a100(), h200()}) {
    const auto engine = engine_of(gpu);
    for (const StepKind kind :
         {StepKind::conv_forward, StepKind::conv_backward_data, StepKind::conv_backward_weights}) {
      ConvProblem problem = small_problem(kind);
      const Planned strict = try_plan(*engine, problem, 256 << 20);
      problem.allow_tf32 = true;
      const Planned tf32 = try_plan(*engine, problem, 256 << 20);
      EXPECT_TRUE(strict.built && tf32.built);
      EXPECT_NE(strict.text, tf32.text) << gpu.name << ", " << name_of(kind);
    }
  }
}

TEST(ConvEngineForAnAbsentGpu, KeepsToTheWorkspaceLimitWithAnotherEngine) {
  const auto engine = engine_of(h200());
  const ConvProblem problem = small_problem(StepKind::conv_forward);
  const Planned roomy = try_plan(*engine, problem, 256 << 20);
  ASSERT_TRUE(roomy.built);
  ASSERT_GT(roomy.workspace_bytes, 0);
  const Planned tight = try_plan(*engine, problem, roomy.workspace_bytes - 1);
  EXPECT_TRUE(tight.built) << tight.text;
  EXPECT_LT(tight.workspace_bytes, roomy.workspace_bytes);
}

TEST(ConvEngineForAnAbsentGpu, PlansGroupedConvolutions) {
  const auto engine = engine_of(a100());
  for (const StepKind kind :
       {StepKind::conv_forward, StepKind::conv_backward_data, StepKind::conv_backward_weights}) {
    ConvProblem problem = small_problem(kind, DType::f16);
    problem.groups = 32;
    const Planned planned = try_plan(*engine, problem, 256 << 20);
    EXPECT_TRUE(planned.built) << planned.text;
  }
}

TEST(ConvEngineForAnAbsentGpu, NamesTheProblemThatNothingComputes) {
  ConvProblem problem = small_problem(StepKind::conv_forward, DType::bf16);
  problem.fusion.gathers_statistics = true;
  try {
    engine_of(h200())->plan(problem, 256 << 20);
    FAIL() << "bf16 has no engine that gathers statistics";
  } catch (const Error& error) {
    const std::string sentence = error.what();
    EXPECT_EQ(error.code(), ExitCode::internal);
    EXPECT_NE(sentence.find(text_of(problem)), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("256 MiB"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("--fusion off"), std::string::npos) << sentence;
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
  }
}

TEST(ConvEngineForAnAbsentGpu, NamesAProblemThatMakesNoSense) {
  ConvProblem problem = small_problem(StepKind::conv_forward);
  problem.c = -1;
  try {
    engine_of(h200())->plan(problem, 0);
    FAIL() << "-1 channels";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(text_of(problem)), std::string::npos) << error.what();
  }
}

TEST(ConvEngineForAnAbsentGpu, RefusesPropertiesThatCuDNNCannotRead) {
  EXPECT_THROW(make_conv_engine({.device_properties_json = "{\"deviceVer\": "}), Error);
}

TEST(ConvEngineForAnAbsentGpu, MakesPlansThatFailWithASentenceWhereTheyAreRun) {
  const auto plan = engine_of(h200())->plan(small_problem(StepKind::conv_forward), 256 << 20);
  std::vector<std::byte*> operands(3, nullptr);
  EXPECT_THROW(plan->run(nullptr, operands, nullptr), Error);
}

// Autotuning for a GPU that isn't there takes what was remembered, and times nothing.
class RememberedEngines : public testing::Test {
 protected:
  RememberedEngines() { setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }
  ~RememberedEngines() override { unsetenv("XDG_CACHE_HOME"); }

  std::string engine_after_remembering(const std::string& gpu, const std::string& engine) const {
    PlanCache(plan_cache_file()).remember(plan_cache_key(gpu, library(), text_of(problem_)), engine);
    return make_conv_engine({.autotune = true, .device_properties_json = h200().properties_json()})
        ->plan(problem_, 256 << 20)
        ->engine();
  }
  static std::string library() {
    const std::size_t version = cudnnGetVersion();
    return "cuDNN " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100);
  }

  const ScratchFolder folder_;
  const ConvProblem problem_ = small_problem(StepKind::conv_forward, DType::f16);
  const std::string first_ = engine_of(h200())->plan(problem_, 256 << 20)->engine();
  // One that heuristics name for this problem, too, further down.
  const std::string other_ = "eng1";
};

TEST_F(RememberedEngines, AreTakenInPlaceOfWhatHeuristicsNameFirst) {
  ASSERT_NE(first_, other_);
  EXPECT_EQ(engine_after_remembering("NVIDIA H200", other_), other_);
}

TEST_F(RememberedEngines, OfAnotherGpuAreLeftAlone) {
  EXPECT_EQ(engine_after_remembering("NVIDIA A100-SXM4-80GB", other_), first_);
}

TEST_F(RememberedEngines, ThatNothingGoesByAreLeftAlone) {
  EXPECT_EQ(engine_after_remembering("NVIDIA H200", "eng9999_k1=1"), first_);
  EXPECT_EQ(engine_after_remembering("NVIDIA H200", ""), first_);
}

TEST_F(RememberedEngines, ThatDoNotKeepTheirWordOnNumbersAreLeftAlone) {
  // Heuristics of cuDNN 9.19 name it here, and note that it adds up in any order.
  ConvProblem problem = small_problem(StepKind::conv_backward_data);
  const std::string first = engine_of(h200())->plan(problem, 256 << 20)->engine();
  PlanCache(plan_cache_file()).remember(plan_cache_key("NVIDIA H200", library(), text_of(problem)), "eng25");
  const auto engine =
      make_conv_engine({.autotune = true, .device_properties_json = h200().properties_json()});
  EXPECT_EQ(engine->plan(problem, 256 << 20)->engine(), first);
}

}  // namespace
}  // namespace plumb::cuda
