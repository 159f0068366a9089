// Promises of the engine beyond a plan: numerical guarantees, limits, one-sentence errors.
#include <gtest/gtest.h>

#include <set>

#include "absent_gpu.h"
#include "problems.h"
#include "tests/bench/expect_error.h"

namespace plumb::cuda {
namespace {

constexpr ConvPass kPasses[] = {ConvPass::forward, ConvPass::backward_data, ConvPass::backward_weights};

ConvProblem small_problem(ConvPass pass, DType dtype = DType::f32) {
  return {.pass = pass,
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

ConvEngine engine_of(const AbsentGpu& gpu) {
  return engine_for(gpu, false);
}

TEST(ConvEngineForAnAbsentGpu, ChoosesOtherEnginesForStrictF32ThanForTf32) {
  for (const AbsentGpu& gpu : {a100(), h200()}) {
    const auto engine = engine_of(gpu);
    for (const ConvPass pass : kPasses) {
      ConvProblem problem = small_problem(pass);
      const Planned strict = try_plan(engine, problem, 256 << 20);
      problem.allow_tf32 = true;
      const Planned tf32 = try_plan(engine, problem, 256 << 20);
      EXPECT_TRUE(strict.built && tf32.built);
      EXPECT_NE(strict.text, tf32.text) << gpu.name << ", " << text_of(problem);
    }
  }
}

TEST(ConvEngineForAnAbsentGpu, KeepsToTheWorkspaceLimitWithAnotherEngine) {
  const auto engine = engine_of(h200());
  const ConvProblem problem = small_problem(ConvPass::forward);
  const Planned roomy = try_plan(engine, problem, 256 << 20);
  ASSERT_TRUE(roomy.built);
  ASSERT_GT(roomy.workspace_bytes, 0);
  const Planned tight = try_plan(engine, problem, roomy.workspace_bytes - 1);
  EXPECT_TRUE(tight.built) << tight.text;
  EXPECT_LT(tight.workspace_bytes, roomy.workspace_bytes);
}

TEST(ConvEngineForAnAbsentGpu, PlansGroupedConvolutions) {
  const auto engine = engine_of(a100());
  for (const ConvPass pass : kPasses) {
    ConvProblem problem = small_problem(pass, DType::f16);
    problem.groups = 32;
    const Planned planned = try_plan(engine, problem, 256 << 20);
    EXPECT_TRUE(planned.built) << planned.text;
  }
}

// Why we compute a ResNet's first convolution ourselves (kernels/cuda/own/conv.h): with 4 channels the first
// engine that sums in f32 copies the images to 8 for the weights' gradient.
TEST(ConvEngineForAnAbsentGpu, CopiesImagesOfFourChannelsToEightForTheWeightGradient) {
  for (const AbsentGpu& gpu : {t4(), a100(), l40s(), h200(), b200()}) {
    const auto engine = engine_of(gpu);
    ConvProblem stem{.pass = ConvPass::backward_weights,
                     .n = 64,
                     .h = 224,
                     .w = 224,
                     .c = 8,
                     .out_h = 112,
                     .out_w = 112,
                     .out_c = 64,
                     .kernel = 7,
                     .stride = 2,
                     .padding = 3,
                     .dtype = DType::f16};
    const auto copy_bytes = static_cast<std::size_t>(stem.n * stem.h * stem.w * stem.c * 2);
    const Planned eight = try_plan(engine, stem, 256 << 20);
    stem.c = 4;
    const Planned four = try_plan(engine, stem, 256 << 20);
    EXPECT_TRUE(eight.built && four.built) << gpu.name;
    EXPECT_LT(eight.workspace_bytes, copy_bytes / 4) << gpu.name;
    EXPECT_GE(four.workspace_bytes, copy_bytes) << gpu.name << " takes 4 channels now: time it";
  }
}

TEST(ConvEngineForAnAbsentGpu, NamesTheProblemThatNothingComputes) {
  ConvProblem problem = small_problem(ConvPass::forward, DType::bf16);
  problem.fusion.gathers_statistics = true;
  const auto plan = [&] { engine_of(h200()).plan(problem, 256 << 20); };
  expect_error(ExitCode::internal, {text_of(problem), "256 MiB", "--fusion off"}, plan);
  problem = small_problem(ConvPass::forward);
  problem.c = -1;
  expect_error(ExitCode::internal, {text_of(problem)}, plan);
}

TEST(ConvEngineForAnAbsentGpu, RefusesPropertiesThatCuDNNCannotRead) {
  EXPECT_THROW(make_conv_engine({.device_properties_json = "{\"deviceVer\": "}), Error);
}

TEST(ConvEngineForAnAbsentGpu, MakesPlansThatFailWithASentenceWhereTheyAreRun) {
  const auto plan = engine_of(h200()).plan(small_problem(ConvPass::forward), 256 << 20);
  std::vector<std::byte*> operands(3, nullptr);
  EXPECT_THROW(plan->run(nullptr, operands, nullptr), Error);
}

// Engines sum in a fixed order if requested, and a requested engine comes first.
TEST(ConvEngineForAnAbsentGpu, LeavesOutEnginesThatSumInAnyOrderWhereItIsDeterministic) {
  const ConvProblem problem = small_problem(ConvPass::backward_data);
  const auto in_order = engine_for(h200());
  // cuDNN 9.19's heuristics list it here, with the note that it sums in any order.
  const std::string any_order = "eng25";
  EXPECT_EQ(engine_of(h200()).plan(problem, 256 << 20, any_order)->engine, any_order);
  EXPECT_NE(in_order.plan(problem, 256 << 20, any_order)->engine, any_order);
}

TEST(ConvEngineForAnAbsentGpu, TakesTheWantedEngineAndTheFirstWhereItIsNotThere) {
  const ConvProblem problem = small_problem(ConvPass::forward, DType::f16);
  const auto engine = engine_of(h200());
  const std::string first = engine.plan(problem, 256 << 20)->engine, other = "eng1";
  ASSERT_NE(first, other);
  EXPECT_EQ(engine.plan(problem, 256 << 20, other)->engine, other);
  EXPECT_EQ(engine.plan(problem, 256 << 20, "eng9999_k1=1")->engine, first);
}

TEST(ConvEngineForAnAbsentGpu, BuildsOneGraphsEnginesByIndex) {
  ConvCandidates listed =
      engine_of(h200()).candidates(small_problem(ConvPass::forward, DType::f16), 256 << 20);
  std::set<std::string> built;
  for (std::size_t i = 0; i < listed.engines.size(); ++i)
    if (const auto plan = listed.build(i)) {
      EXPECT_EQ(plan->engine, listed.engines[i].engine);
      EXPECT_LE(plan->workspace_bytes, 256U << 20);
      built.insert(plan->engine);
    }
  EXPECT_GT(built.size(), 3U);
}

}  // namespace
}  // namespace plumb::cuda
