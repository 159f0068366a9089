// Every convolution that a Program of ResNet-50 or of a backbone of faces asks for has a plan, on every kind
// of GPU and in each precision.
#include <gtest/gtest.h>

#include "absent_gpu.h"
#include "problems.h"

namespace plumb::cuda {
namespace {

struct Case {
  AbsentGpu (*gpu)();
  Precision precision;
  bool fuse;
};

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  return test_name(info.param.gpu(), info.param.precision) + (info.param.fuse ? "_fused" : "");
}

class ConvolutionPlans : public testing::TestWithParam<Case> {
 protected:
  template <typename Plans>
  void expect_plans(const Plans& plans_for, std::size_t at_least) const {
    const AbsentGpu gpu = GetParam().gpu();
    const auto engine = make_conv_engine({.device_properties_json = gpu.properties_json()});
    const std::vector<WantedPlan> wanted =
        plans_for(gpu.limits(), {.precision = GetParam().precision, .fuse = GetParam().fuse});
    EXPECT_GT(wanted.size(), at_least);
    for (const WantedPlan& plan : wanted) {
      const Planned planned = try_plan(*engine, plan.problem, plan.workspace_limit);
      EXPECT_TRUE(planned.built) << plan.step << ": " << planned.text;
      EXPECT_LE(planned.workspace_bytes, plan.workspace_limit) << plan.step;
    }
  }
};

TEST_P(ConvolutionPlans, BuildForEveryStepOfResNet50WithinItsWorkspace) {
  expect_plans(wanted_plans, 3 * 20);
}

class FacePlans : public ConvolutionPlans {};

TEST_P(FacePlans, BuildForEveryStepOfR50R100AndY1WithinItsWorkspace) {
  expect_plans(wanted_face_plans, 3 * 25);
}

INSTANTIATE_TEST_SUITE_P(
    OnGpus, ConvolutionPlans,
    testing::Values(Case{t4, Precision::fp16, false}, Case{t4, Precision::fp32, false},
                    Case{a100, Precision::fp16, false}, Case{a100, Precision::bf16, false},
                    Case{a100, Precision::tf32, false}, Case{a100, Precision::fp32, false},
                    Case{h200, Precision::fp16, false}, Case{h200, Precision::bf16, false},
                    Case{h200, Precision::tf32, false}, Case{h200, Precision::fp32, false},
                    Case{a100, Precision::fp16, true}, Case{h200, Precision::fp16, true},
                    Case{l40s, Precision::fp16, true}, Case{b200, Precision::fp16, true},
                    Case{t4, Precision::fp16, true}, Case{h200, Precision::bf16, true}),
    name_of_case);

INSTANTIATE_TEST_SUITE_P(
    OnGpus, FacePlans,
    testing::Values(Case{t4, Precision::fp16, false}, Case{t4, Precision::fp32, false},
                    Case{a100, Precision::fp16, false}, Case{a100, Precision::bf16, false},
                    Case{a100, Precision::fp32, false}, Case{h200, Precision::fp16, false},
                    Case{h200, Precision::bf16, false}, Case{h200, Precision::tf32, false},
                    Case{h200, Precision::fp32, false}, Case{a100, Precision::fp16, true},
                    Case{h200, Precision::fp16, true}),
    name_of_case);

}  // namespace
}  // namespace plumb::cuda
