// Every convolution in a Program of ResNet-50 or a face backbone has a plan, on every kind of GPU and in each
// precision, at the usual batch and at the smallest and largest.
#include <gtest/gtest.h>

#include <set>

#include "absent_gpu.h"
#include "fused_patterns.h"
#include "problems.h"

namespace plumb::cuda {
namespace {

struct Case {
  AbsentGpu (*gpu)();
  Precision precision;
};

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  return test_name(info.param.gpu(), info.param.precision);
}

class ConvolutionPlans : public testing::TestWithParam<Case> {
 protected:
  DescribeOptions options(const Workload& workload, bool fuse) const {
    return describe_options(workload, GetParam().precision, fuse);
  }

  // This workload's instructions, fused and plain.
  void expect_plans(const Workload& workload, std::int64_t batch) {
    const Graph graph = make_graph(workload, batch);
    for (const bool fuse : {true, false}) {
      for (const WantedPlan& plan : wanted_plans(graph, gpu_.limits(), options(workload, fuse)))
        if (known_.insert(text_of(plan.problem)).second) expect_plan(plan);
    }
  }
  void expect_plan(const WantedPlan& plan) {
    const ConvEngine& engine = is_fused(plan.problem) ? any_order_ : in_order_;
    const Planned planned = try_plan(engine, plan.problem, plan.workspace_limit);
    EXPECT_EQ(planned.built, !lacks_engine(gpu_.limits().compute_capability, plan.problem))
        << plan.instruction << ": " << planned.text;
    EXPECT_LE(planned.workspace_bytes, plan.workspace_limit) << plan.instruction;
  }

  const AbsentGpu gpu_ = GetParam().gpu();
  const ConvEngine in_order_ = engine_for(gpu_), any_order_ = engine_for(gpu_, false);
  std::set<std::string> known_;
};

TEST_P(ConvolutionPlans, BuildForEveryStepAtTheUsualBatchWithinItsWorkspace) {
  expect_plans({"resnet50", 224}, kBatch);
  EXPECT_GT(known_.size(), 3 * 20);
  for (const char* model : {"r50", "r100", "y1"}) expect_plans({model, 112}, kBatch);
  EXPECT_GT(known_.size(), 3 * (20 + 20));
}

TEST_P(ConvolutionPlans, BuildForOneSmallImage) {
  expect_plans({"resnet50", 32}, 1);
  expect_plans({"y1", 112}, 1);
}

TEST_P(ConvolutionPlans, BuildForTheLargestBatchThatFits) {
  for (const Workload& workload : {Workload{"resnet50", 224}, {"resnet50", 32}, {"r50", 112}})
    expect_plans(workload, largest_batch(workload, gpu_.limits(), options(workload, true)));
}

using ConvolutionPlansOnHopper = ConvolutionPlans;

// tests/gpu/gpu_check.sh's, and README's, beside the batches above.
TEST_P(ConvolutionPlansOnHopper, BuildForTheBatchesOfTheCheckOfAGpu) {
  for (const std::int64_t batch : {16, 64, 256, 512}) expect_plans({"resnet50", 224}, batch);
  for (const char* model : {"r50", "r100", "y1"}) expect_plans({model, 112}, 64);
  EXPECT_GT(known_.size(), 3 * 80);
}

INSTANTIATE_TEST_SUITE_P(OnGpus, ConvolutionPlansOnHopper, testing::Values(Case{h200, Precision::fp16}),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(
    OnGpus, ConvolutionPlans,
    testing::Values(Case{t4, Precision::fp16}, Case{t4, Precision::fp32}, Case{a100, Precision::fp16},
                    Case{a100, Precision::bf16}, Case{a100, Precision::tf32}, Case{a100, Precision::fp32},
                    Case{l40s, Precision::fp16}, Case{h200, Precision::fp16}, Case{h200, Precision::bf16},
                    Case{h200, Precision::tf32}, Case{h200, Precision::fp32}, Case{b200, Precision::fp16},
                    Case{b200, Precision::bf16}, Case{b200, Precision::tf32}, Case{b200, Precision::fp32}),
    name_of_case);

}  // namespace
}  // namespace plumb::cuda
