// Which fused patterns have an engine: describing relies on fusion_support, so it must match what cuDNN
// builds.
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "absent_gpu.h"
#include "fused_patterns.h"
#include "kernels/cuda/plan/fusion.h"
#include "problems.h"

namespace plumb::cuda {
namespace {

constexpr std::size_t kWorkspaceLimit = std::size_t{1} << 30;

struct Case {
  AbsentGpu (*gpu)();
  Precision precision;
};

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  return test_name(info.param.gpu(), info.param.precision);
}

std::size_t gradient_bytes(const ConvProblem& problem) {
  return static_cast<std::size_t>(problem.n * problem.h * problem.w * problem.c) * bytes_of(problem.dtype);
}

class FusedPlans : public testing::TestWithParam<Case> {
 protected:
  // The pattern around every matching convolution of ResNet-50; the first one has no preceding norm. If no
  // engine exists, only around one convolution per kernel and stride.
  std::vector<ConvProblem> shapes(FusedGraph pattern) const {
    std::vector<ConvProblem> found;
    std::set<std::pair<int, int>> kernels;
    for (const WantedPlan& wanted :
         wanted_plans(gpu_.limits(), {.precision = GetParam().precision, .fuse = false})) {
      const auto problem = fused(pattern, wanted.problem);
      if (!problem) continue;
      const bool is_new = kernels.insert({problem->kernel, problem->stride}).second;
      if (is_new || support_.statistics) found.push_back(*problem);
    }
    return found;
  }

  const AbsentGpu gpu_ = GetParam().gpu();
  const FusionSupport support_ =
      fusion_support(gpu_.limits().compute_capability, GetParam().precision, false);
  const ConvEngine engine_ = engine_for(gpu_, false);
};

// An engine that holds the whole gradient in its workspace moves more bytes than it saves.
TEST_P(FusedPlans, AreBuiltWhereDescribingSaysSo) {
  for (const auto& [pattern, supported] :
       {std::pair{FusedGraph::statistics, support_.statistics},
        {FusedGraph::normalized_input, support_.normalized_input},
        {FusedGraph::normalized_input_weights, support_.normalized_input_weights},
        {FusedGraph::norm_backward_data, support_.norm_backward_data}})
    for (const ConvProblem& problem : shapes(pattern)) {
      const bool is_backward = pattern == FusedGraph::norm_backward_data;
      const Planned planned =
          try_plan(engine_, problem, is_backward ? gradient_bytes(problem) / 2 : kWorkspaceLimit);
      EXPECT_EQ(planned.built, supported) << text_of(problem) << ": " << planned.text;
    }
}

INSTANTIATE_TEST_SUITE_P(OnGpus, FusedPlans,
                         testing::Values(Case{t4, Precision::fp16}, Case{a100, Precision::fp16},
                                         Case{a100, Precision::bf16}, Case{l40s, Precision::fp16},
                                         Case{h200, Precision::fp16}, Case{h200, Precision::bf16},
                                         Case{b200, Precision::fp16}, Case{b200, Precision::bf16}),
                         name_of_case);

TEST(FusedPlansOnA100AndH200, TheFirstConvolutionCannotGatherStatistics) {
  for (const AbsentGpu& gpu : {a100(), h200()}) {
    const auto engine = engine_for(gpu);
    ConvProblem problem =
        wanted_plans(gpu.limits(), {.precision = Precision::fp16, .fuse = false}).front().problem;
    ASSERT_EQ(problem.kernel, 7);
    problem.fusion = {.gathers_statistics = true};
    EXPECT_FALSE(try_plan(engine, problem, kWorkspaceLimit).built) << gpu.name;
  }
}

TEST(FusedPlansOnA100, BackwardThroughANormKeepsTheGradientInF32Beside) {
  const auto engine = engine_for(a100());
  const ConvProblem problem{.pass = ConvPass::norm_backward_data,
                            .n = kBatch,
                            .h = 56,
                            .w = 56,
                            .c = 64,
                            .out_h = 56,
                            .out_w = 56,
                            .out_c = 64,
                            .kernel = 3,
                            .padding = 1,
                            .dtype = DType::f16};
  const Planned planned = try_plan(engine, problem, kWorkspaceLimit);
  EXPECT_TRUE(planned.built) << planned.text;
  EXPECT_GE(planned.workspace_bytes, 2 * gradient_bytes(problem));
}

// describe() ignores size: ResNet-50 at 224 pixels requests them from batch 2675 on.
TEST(FusedPlansOnH200, TakeNoTensorOfMoreThan2To31Elements) {
  const auto engine = engine_for(h200());
  for (const FusedGraph pattern : kFusedGraphs) {
    ConvProblem plain{.pass = plain_pass(pattern),
                      .h = 16,
                      .w = 16,
                      .c = 64,
                      .out_h = 16,
                      .out_w = 16,
                      .out_c = 256,
                      .dtype = DType::f16};
    for (const std::int64_t n : {32768, 32769}) {
      plain.n = n;
      const ConvProblem problem = fused(pattern, plain).value();
      EXPECT_EQ(lacks_engine(90, problem), n > 32768);
      EXPECT_EQ(try_plan(engine, problem, kWorkspaceLimit).built, n == 32768) << name_of(pattern);
      EXPECT_TRUE(try_plan(engine, plain, kWorkspaceLimit).built);
    }
  }
}

// Not requested by describing, either.
TEST(FusedPlansOnH200, NormalisedInputNeedsStatisticsAndFactorsInHalf) {
  const auto engine = engine_for(h200());
  ConvProblem problem{.n = kBatch,
                      .h = 56,
                      .w = 56,
                      .c = 64,
                      .out_h = 56,
                      .out_w = 56,
                      .out_c = 256,
                      .dtype = DType::f16,
                      .fusion = {.normalizes_input = true, .gathers_statistics = true},
                      .scale_shift_dtype = DType::f16};
  EXPECT_TRUE(try_plan(engine, problem, kWorkspaceLimit).built);
  problem.scale_shift_dtype = DType::f32;
  EXPECT_FALSE(try_plan(engine, problem, kWorkspaceLimit).built);
  problem.scale_shift_dtype = DType::f16;
  problem.fusion.gathers_statistics = false;
  EXPECT_FALSE(try_plan(engine, problem, kWorkspaceLimit).built);
}

}  // namespace
}  // namespace plumb::cuda
