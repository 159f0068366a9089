// Which fused patterns have an engine: what describing relies on (fusion_support) is what cuDNN builds.
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "absent_gpu.h"
#include "kernels/cuda/fusion.h"
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
  // Every shape that ResNet-50 has for steps of this kind; the first convolution has no norm in front of it.
  // One of each kernel and stride where there is no engine for any.
  std::vector<ConvProblem> shapes(StepKind kind) const {
    std::vector<ConvProblem> found;
    std::set<std::pair<int, int>> kernels;
    for (const WantedPlan& wanted :
         wanted_plans(gpu_.limits(), {.precision = GetParam().precision, .fuse = false})) {
      const ConvProblem& problem = wanted.problem;
      if (problem.kind != kind || problem.kernel == 7) continue;
      const bool is_new = kernels.insert({problem.kernel, problem.stride}).second;
      if (is_new || support_.statistics) found.push_back(problem);
    }
    return found;
  }

  void expect_plan(ConvProblem problem, bool expected, std::size_t workspace_limit = kWorkspaceLimit) {
    problem.factors_dtype = problem.dtype;
    const Planned planned = try_plan(*engine_, problem, workspace_limit);
    EXPECT_EQ(planned.built, expected) << text_of(problem) << ": " << planned.text;
  }

  const AbsentGpu gpu_ = GetParam().gpu();
  const FusionSupport support_ = fusion_support(gpu_.limits().compute_capability, GetParam().precision, true);
  const std::unique_ptr<ConvEngine> engine_ =
      make_conv_engine({.deterministic = true, .device_properties_json = gpu_.properties_json()});
};

TEST_P(FusedPlans, ForwardWithStatisticsBuildsWhereDescribingSaysSo) {
  for (ConvProblem problem : shapes(StepKind::conv_forward)) {
    problem.fusion = {.gathers_statistics = true};
    expect_plan(problem, support_.statistics);
  }
}

TEST_P(FusedPlans, ForwardOfNormalisedInputBuildsWhereDescribingSaysSo) {
  for (ConvProblem problem : shapes(StepKind::conv_forward)) {
    problem.fusion = {.normalizes_input = true, .gathers_statistics = true};
    expect_plan(problem, support_.normalized_input);
  }
}

TEST_P(FusedPlans, ForwardOfNormalisedInputWithResidualBuildsFor1x1WithStride1WhereDescribingSaysSo) {
  for (ConvProblem problem : shapes(StepKind::conv_forward)) {
    problem.fusion = {.normalizes_input = true, .adds_residual = true, .gathers_statistics = true};
    expect_plan(problem, support_.residual_input && problem.kernel == 1 && problem.stride == 1);
  }
}

TEST_P(FusedPlans, WeightGradientOfNormalisedInputBuildsWhereDescribingSaysSo) {
  for (ConvProblem problem : shapes(StepKind::conv_backward_weights)) {
    problem.fusion = {.normalizes_input = true};
    expect_plan(problem, support_.normalized_input_weights);
  }
}

// An engine that keeps the whole gradient in its workspace moves more bytes than it saves.
TEST_P(FusedPlans, BackwardThroughANormBuildsWithoutACopyOfTheGradientWhereDescribingSaysSo) {
  for (ConvProblem problem : shapes(StepKind::conv_backward_data)) {
    problem.kind = StepKind::conv_norm_backward_data;
    expect_plan(problem, support_.norm_backward_data, gradient_bytes(problem) / 2);
  }
}

INSTANTIATE_TEST_SUITE_P(OnGpus, FusedPlans,
                         testing::Values(Case{t4, Precision::fp16}, Case{a100, Precision::fp16},
                                         Case{a100, Precision::bf16}, Case{b200, Precision::fp16},
                                         Case{h200, Precision::fp16}, Case{h200, Precision::bf16}),
                         name_of_case);

TEST(FusedPlansOnA100AndH200, TheFirstConvolutionCannotGatherStatistics) {
  for (const AbsentGpu& gpu : {a100(), h200()}) {
    const auto engine = make_conv_engine({.device_properties_json = gpu.properties_json()});
    ConvProblem problem =
        wanted_plans(gpu.limits(), {.precision = Precision::fp16, .fuse = false}).front().problem;
    ASSERT_EQ(problem.kernel, 7);
    problem.fusion = {.gathers_statistics = true};
    EXPECT_FALSE(try_plan(*engine, problem, kWorkspaceLimit).built) << gpu.name;
  }
}

TEST(FusedPlansOnA100, BackwardThroughANormKeepsTheGradientInF32Beside) {
  const auto engine = make_conv_engine({.device_properties_json = a100().properties_json()});
  const ConvProblem problem{.kind = StepKind::conv_norm_backward_data,
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
  const Planned planned = try_plan(*engine, problem, kWorkspaceLimit);
  EXPECT_TRUE(planned.built) << planned.text;
  EXPECT_GE(planned.workspace_bytes, 2 * gradient_bytes(problem));
}

// What describing may not ask for, either.
TEST(FusedPlansOnH200, NormalisedInputNeedsStatisticsAndFactorsInHalf) {
  const auto engine = make_conv_engine({.device_properties_json = h200().properties_json()});
  ConvProblem problem{.n = kBatch,
                      .h = 56,
                      .w = 56,
                      .c = 64,
                      .out_h = 56,
                      .out_w = 56,
                      .out_c = 256,
                      .dtype = DType::f16,
                      .fusion = {.normalizes_input = true, .gathers_statistics = true},
                      .factors_dtype = DType::f16};
  EXPECT_TRUE(try_plan(*engine, problem, kWorkspaceLimit).built);
  problem.factors_dtype = DType::f32;
  EXPECT_FALSE(try_plan(*engine, problem, kWorkspaceLimit).built);
  problem.factors_dtype = DType::f16;
  problem.fusion.gathers_statistics = false;
  EXPECT_FALSE(try_plan(*engine, problem, kWorkspaceLimit).built);
}

}  // namespace
}  // namespace plumb::cuda
