// What every described Program must hold, whatever the device, and what ResNet-50's cost on named GPUs.
#include "kernels/describe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include "kernels/dependencies.h"
#include "kernels/memory_plan.h"
#include "kernels/roofline.h"
#include "models/cost.h"
#include "models/resnet50.h"

namespace plumb {
namespace {

struct Case {
  std::string target;
  Precision precision;
};
std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.target << " " << name_of(one.precision);
}
std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.target + "_" + std::string(name_of(info.param.precision));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

Program resnet50(const std::string& target, Precision precision, std::int64_t batch,
                 std::int64_t image_size = 224) {
  return describe(make_resnet50({.batch = batch, .image_size = image_size}),
                  {.precision = precision, .load_batch_every_step = true}, *find_target(target));
}

std::size_t count_kind(const Program& program, StepKind kind) {
  return static_cast<std::size_t>(std::count_if(program.steps.begin(), program.steps.end(),
                                                [&](const Step& step) { return step.kind == kind; }));
}

class DescribedProgram : public testing::TestWithParam<Case> {
 protected:
  const Graph graph_ = make_resnet50({.batch = 2, .image_size = 64});
  const Program program_ = resnet50(GetParam().target, GetParam().precision, 2, 64);

  std::vector<std::pair<const Step*, Access>> uses_of(BufferId id) const {
    std::vector<std::pair<const Step*, Access>> uses;
    for (const Step& step : program_.steps) {
      for (const BufferUse& use : step.uses) {
        if (use.buffer == id) uses.emplace_back(&step, use.access);
      }
    }
    return uses;
  }
};

TEST_P(DescribedProgram, WritesEveryTemporaryOnceBeforeItIsReadAndNoneInVain) {
  for (BufferId id = 0; id < program_.buffers.size(); ++id) {
    const Buffer& buffer = program_.buffers[id];
    if (buffer.persistent) continue;
    const auto uses = uses_of(id);
    ASSERT_GE(uses.size(), 2u) << buffer.name;
    EXPECT_EQ(uses.front().second, Access::write) << buffer.name;
    for (std::size_t i = 1; i < uses.size(); ++i) EXPECT_NE(uses[i].second, Access::write) << buffer.name;
    EXPECT_EQ(uses.back().second, Access::read) << buffer.name;
  }
}

TEST_P(DescribedProgram, WritesEachGradientOnceAndUpdatesEachParameterOnceAfterwards) {
  std::size_t gradients = 0, masters = 0;
  for (BufferId id = 0; id < program_.buffers.size(); ++id) {
    const Buffer& buffer = program_.buffers[id];
    if (buffer.role == Role::gradient) {
      ++gradients;
      const auto uses = uses_of(id);
      ASSERT_EQ(uses.size(), 2u) << buffer.name;
      EXPECT_EQ(uses[0].second, Access::write) << buffer.name;
      EXPECT_EQ(uses[0].first->phase, Phase::backward) << buffer.name;
      EXPECT_EQ(uses[1].second, Access::read) << buffer.name;
      EXPECT_EQ(uses[1].first->kind, StepKind::update) << buffer.name;
    } else if (buffer.role == Role::parameter || buffer.role == Role::optimizer) {
      masters += buffer.role == Role::optimizer;
      const auto uses = uses_of(id);
      ASSERT_FALSE(uses.empty()) << buffer.name;
      for (const auto& [step, access] : uses) {
        const bool last = step == uses.back().first;
        EXPECT_EQ(step->kind == StepKind::update, last) << buffer.name << " in " << step->name;
        EXPECT_EQ(access != Access::read, last) << buffer.name << " in " << step->name;
      }
    }
  }
  EXPECT_EQ(gradients, graph_.parameters.size());
  EXPECT_EQ(masters, graph_.parameters.size());
}

TEST_P(DescribedProgram, HasEveryOperationForwardsAndBackwards) {
  EXPECT_EQ(count_kind(program_, StepKind::conv_forward), 53u);
  EXPECT_EQ(count_kind(program_, StepKind::conv_backward_weights), 53u);
  EXPECT_EQ(count_kind(program_, StepKind::conv_backward_data), 52u);
  EXPECT_EQ(count_kind(program_, StepKind::norm_forward), 53u);
  EXPECT_EQ(count_kind(program_, StepKind::norm_backward), 53u);
  EXPECT_EQ(count_kind(program_, StepKind::pool_forward), 2u);
  EXPECT_EQ(count_kind(program_, StepKind::pool_backward), 2u);
  EXPECT_EQ(count_kind(program_, StepKind::dense_forward), 1u);
  EXPECT_EQ(count_kind(program_, StepKind::softmax_loss), 1u);
  EXPECT_EQ(program_.steps.back().kind, StepKind::advance_state);
}

TEST_P(DescribedProgram, CountsTheGraphsMacsThreeTimesButForTheImagesGradient) {
  double macs = 0;
  for (const Step& step : program_.steps) macs += step.work.macs;
  const double expected = static_cast<double>(
      graph_.batch() * (3 * macs_per_image(graph_) - macs_per_image(graph_, graph_.ops[0])));
  EXPECT_DOUBLE_EQ(macs, expected);
}

TEST_P(DescribedProgram, NamesEveryStepAndBufferApart) {
  std::set<std::string> steps, buffers;
  for (const Step& step : program_.steps) EXPECT_TRUE(steps.insert(step.name).second) << step.name;
  for (const Buffer& buffer : program_.buffers)
    EXPECT_TRUE(buffers.insert(buffer.name).second) << buffer.name;
}

TEST_P(DescribedProgram, LoadsBatchesOnTheInputLaneOnlyWhenAsked) {
  EXPECT_EQ(program_.steps.front().kind, StepKind::load_batch);
  EXPECT_EQ(program_.steps.front().lane, Lane::input);
  EXPECT_EQ(cross_lane_dependencies(program_)[1], std::vector<StepId>{0});
  const Program synthetic =
      describe(graph_, {.precision = GetParam().precision}, *find_target(GetParam().target));
  EXPECT_EQ(count_kind(synthetic, StepKind::load_batch), 0u);
  EXPECT_EQ(synthetic.steps.size() + 1, program_.steps.size());
}

TEST_P(DescribedProgram, SharesMemoryOnlyBetweenWhatIsNeverLiveAtOnce) {
  const MemoryPlan plan = plan_memory(program_);
  std::vector<BufferId> temporaries;
  std::vector<std::pair<StepId, StepId>> lives(program_.buffers.size(), {program_.steps.size(), 0});
  for (StepId step = 1; step < program_.steps.size(); ++step) {  // after load_batch all are on one lane
    ASSERT_EQ(program_.steps[step].lane, Lane::compute);
    for (const BufferUse& use : program_.steps[step].uses) {
      lives[use.buffer].first = std::min(lives[use.buffer].first, step);
      lives[use.buffer].second = std::max(lives[use.buffer].second, step);
    }
  }
  for (BufferId a = 0; a < program_.buffers.size(); ++a) {
    for (BufferId b = a + 1; b < program_.buffers.size(); ++b) {
      if (plan.offsets[a] >= plan.offsets[b] + program_.buffers[b].bytes) continue;
      if (plan.offsets[b] >= plan.offsets[a] + program_.buffers[a].bytes) continue;
      EXPECT_TRUE(lives[a].second < lives[b].first || lives[b].second < lives[a].first)
          << program_.buffers[a].name << ", " << program_.buffers[b].name;
      EXPECT_FALSE(program_.buffers[a].persistent || program_.buffers[b].persistent);
    }
  }
}

TEST_P(DescribedProgram, IsPlannedWithinFifteenPercentOfWhatIsLiveAtOnce) {
  for (std::int64_t batch : {8, 32, 128, 256}) {
    const Program program = resnet50(GetParam().target, GetParam().precision, batch);
    const std::size_t planned = plan_memory(program).arena_bytes, live = largest_live_bytes(program);
    EXPECT_GE(planned, live) << "batch " << batch;
    EXPECT_LE(static_cast<double>(planned), 1.15 * static_cast<double>(live)) << "batch " << batch;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DescribedProgram,
                         testing::Values(Case{"cpu", Precision::fp32}, Case{"v100-16gb", Precision::fp32},
                                         Case{"h200", Precision::tf32}, Case{"h200", Precision::fp16},
                                         Case{"h200", Precision::bf16}),
                         name_of_case);

bool fits(const std::string& target, Precision precision, std::int64_t batch) {
  const Program program = resnet50(target, precision, batch);
  return static_cast<double>(plan_memory(program).arena_bytes) <= find_target(target)->memory_bytes;
}

TEST(CudaDescribe, BatchesThatAV100Holds) {
  EXPECT_TRUE(fits("v100-16gb", Precision::fp32, 128));
  EXPECT_TRUE(fits("v100-16gb", Precision::fp16, 256));
  EXPECT_FALSE(fits("v100-16gb", Precision::fp32, 1024));
}

// Images per second: gpu.md's per-operation limits of fp16 training with plain convolutions and own fused
// norms.
TEST(CudaDescribe, RooflineOfHalfPrecisionTraining) {
  const std::map<std::string, double> expected{{"h200", 10885}, {"a100-80gb", 4133}, {"v100-16gb", 1829}};
  const Program program = resnet50("h200", Precision::fp16, 256);
  for (const auto& [target, images_per_second] : expected) {
    const double seconds = roofline(program, *find_target(target), Precision::fp16).seconds;
    EXPECT_NEAR(256 / seconds, images_per_second, 0.05 * images_per_second) << target;
  }
}

TEST(CudaDescribe, BytesPerImageOfHalfPrecisionTraining) {
  const Program program = resnet50("h200", Precision::fp16, 256);
  EXPECT_NEAR(roofline(program, *find_target("h200"), Precision::fp16).bytes / 256, 344e6, 0.03 * 344e6);
}

TEST(CudaDescribe, KeepsMastersAndStatisticsInFp32AndTheRestInHalf) {
  const Program program = resnet50("h200", Precision::bf16, 2, 64);
  std::map<std::string, DType> dtypes;
  std::map<std::string, std::size_t> bytes;
  for (const Buffer& buffer : program.buffers) {
    dtypes[buffer.name] = buffer.dtype;
    bytes[buffer.name] = buffer.bytes;
  }
  EXPECT_EQ(dtypes.at("layer1.0.conv1.weight"), DType::f32);
  EXPECT_EQ(dtypes.at("layer1.0.conv1.weight.half"), DType::bf16);
  EXPECT_EQ(dtypes.at("layer1.0.conv1.weight.gradient"), DType::bf16);
  EXPECT_EQ(dtypes.at("layer1.0.conv1.weight.momentum"), DType::f32);
  EXPECT_EQ(dtypes.at("layer1.0.bn1.weight.gradient"), DType::f32);
  EXPECT_EQ(dtypes.at("layer1.0.bn1.running_mean"), DType::f32);
  EXPECT_EQ(dtypes.at("layer1.0.conv1"), DType::bf16);
  EXPECT_FALSE(dtypes.contains("layer1.0.bn1.weight.half"));
  EXPECT_EQ(bytes.at("images"), 2u * 64 * 64 * 8 * 2);
  EXPECT_EQ(bytes.at("conv1.weight"), 64u * 49 * 8 * 4);
  EXPECT_EQ(bytes.at("conv1.weight.half"), 64u * 49 * 8 * 2);
  EXPECT_EQ(bytes.at("bn1.mask"), 2u * 32 * 32 * 64 / 8);
}

TEST(CudaDescribe, FoldsTheBlocksEndIntoItsNorm) {
  const Program program = resnet50("h200", Precision::fp16, 2, 64);
  EXPECT_EQ(count_kind(program, StepKind::add_relu_forward), 0u);
  EXPECT_EQ(count_kind(program, StepKind::add_relu_backward), 0u);
  EXPECT_EQ(count_kind(program, StepKind::update), 1u);
  EXPECT_EQ(count_kind(program, StepKind::accumulate),
            1u);  // what two convolutions say of the max pool's output
}

}  // namespace
}  // namespace plumb
