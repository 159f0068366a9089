// Memory and traffic of a face training step on a GPU: heads in fp32, samples, shortcuts that pass their
// gradient on.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "kernels/cuda/plan/fusion.h"
#include "kernels/cuda/plan/margin_partition.h"
#include "kernels/program/describe.h"
#include "kernels/program/memory_plan.h"
#include "kernels/program/roofline.h"
#include "models/arcface.h"
#include "tests/kernels/described_instructions.h"

namespace plumb {
namespace {

ModelOptions small(Backbone backbone = kIResNet50) {
  return {.backbone = backbone, .batch = 2, .image_size = 32, .embedding = 64, .classes = 100};
}
Program described(const Graph& graph, const DescribeOptions& options) {
  return describe(graph, options, *find_target("h200"));
}
constexpr DescribeOptions kHalf{.precision = Precision::fp16, .scale_loss = true};
constexpr DescribeOptions kHalfWithFp32Head{
    .precision = Precision::fp16, .scale_loss = true, .fp32_head = true};

std::map<std::string, Buffer> buffers_of(const Program& program) {
  std::map<std::string, Buffer> buffers;
  for (const Buffer& buffer : program.buffers) buffers[buffer.name] = buffer;
  return buffers;
}
using Operands = std::vector<std::string>;

TEST(CudaArcFaceDescribe, AnFp32HeadHoldsNothingInHalf) {
  const std::map<std::string, Buffer> buffers =
      buffers_of(described(make_arcface(small()), kHalfWithFp32Head));
  for (const char* name : {"fc", "fc.cast_in", "fc.gradient_by.features", "features", "head.products"})
    EXPECT_EQ(buffers.at(name).dtype, DType::f32) << name;
  EXPECT_EQ(buffers.at("fc.weight.gradient").dtype, DType::f32);
  EXPECT_EQ(buffers.at("head.weight.gradient").dtype, DType::f32);
  EXPECT_FALSE(buffers.contains("fc.weight.half"));
  EXPECT_FALSE(buffers.contains("head.weight.half"));
  EXPECT_EQ(buffers.at("dropout").dtype, DType::f16);
  EXPECT_EQ(buffers.at("conv1.weight.half").dtype, DType::f16);
  EXPECT_EQ(buffers.at("conv1.weight.gradient").dtype, DType::f16);
}

TEST(CudaArcFaceDescribe, CastsStandWhereTheFp32HeadBegins) {
  const Program program = described(make_arcface(small()), kHalfWithFp32Head);
  EXPECT_EQ(count_kind<Cast>(program), 2U);
  EXPECT_EQ(operands_of(program, "fc.cast_in"), (Operands{"from r dropout", "into w fc.cast_in"}));
  EXPECT_EQ(operands_of(program, "fc.cast_d_in"),
            (Operands{"from r dropout.gradient_by.fc", "into w fc.cast_d_in"}));
  EXPECT_EQ(buffers_of(program).at("fc.cast_d_in").dtype, DType::f16);
  EXPECT_EQ(instruction_named(program, "fc.cast_in").work.macs, 0);
  EXPECT_EQ(instruction_named(program, "fc.cast_in").work.bytes, 2 * 512 * 2 * 2 * 6);
  EXPECT_EQ(operand_of(program, "fc.forward", "in"), "r fc.cast_in");
  EXPECT_EQ(operand_of(program, "fc.backward_weights", "in"), "r fc.cast_in");
}

TEST(CudaArcFaceDescribe, AHalfHeadIsCastWhereMarginsWantFp32Features) {
  const Program program = described(make_arcface(small()), kHalf);
  const std::map<std::string, Buffer> buffers = buffers_of(program);
  EXPECT_EQ(count_kind<Cast>(program), 2U);
  EXPECT_EQ(operands_of(program, "head.cast_in"), (Operands{"from r features", "into w head.cast_in"}));
  EXPECT_EQ(buffers.at("features").dtype, DType::f16);
  EXPECT_EQ(buffers.at("head.cast_in").dtype, DType::f32);
  EXPECT_EQ(buffers.at("head.cast_d_in").dtype, DType::f16);
  EXPECT_EQ(buffers.at("head.weight.half").dtype, DType::f16);
  EXPECT_EQ(buffers.at("head.products").dtype, DType::f16);
  EXPECT_EQ(buffers.at("head.weight.gradient").dtype, DType::f16);
}

TEST(CudaArcFaceDescribe, ATf32HeadIsStoredAsAnFp32OneAndMultipliesFaster) {
  DescribeOptions options = kHalfWithFp32Head;
  const Graph graph = make_arcface(small());
  const Program strict = described(graph, options);
  options.tf32_head = true;
  const Program rounded = described(graph, options);
  EXPECT_FALSE(strict.allow_tf32);
  EXPECT_TRUE(rounded.allow_tf32);
  ASSERT_EQ(rounded.buffers.size(), strict.buffers.size());
  for (std::size_t i = 0; i < strict.buffers.size(); ++i)
    EXPECT_EQ(rounded.buffers[i].dtype, strict.buffers[i].dtype) << strict.buffers[i].name;
  const auto precision = [](const Program& program, const char* name) {
    return precision_of(program, instruction_named(program, name), Precision::fp16);
  };
  for (const char* name : {"fc.forward", "head.products"}) {
    EXPECT_EQ(precision(strict, name), Precision::fp32) << name;
    EXPECT_EQ(precision(rounded, name), Precision::tf32) << name;
  }
  EXPECT_EQ(precision(rounded, "conv1.forward"), Precision::fp16);
}

TEST(CudaArcFaceDescribe, Fp32NeedsNoCasts) {
  EXPECT_EQ(count_kind<Cast>(described(make_arcface(small()), {})), 0U);
  EXPECT_EQ(count_kind<Cast>(described(make_arcface(small()), {.fp32_head = true})), 0U);
}

TEST(CudaArcFaceDescribe, AnUntrainedScaleIsNeitherUpdatedNorLookedAt) {
  const Program program = described(make_arcface(small()), kHalfWithFp32Head);
  const std::map<std::string, Buffer> buffers = buffers_of(program);
  EXPECT_TRUE(buffers.at("features.weight").persistent);
  EXPECT_FALSE(buffers.contains("features.weight.momentum"));
  EXPECT_EQ(buffers.at("features.weight.gradient").role, Role::activation_gradient);
  for (const char* instruction : {"update", "find_overflow"}) {
    const Operands operands = operands_of(program, instruction);
    const auto reads_of = [&](const std::string& buffer) {
      return std::count_if(operands.begin(), operands.end(),
                           [&](const std::string& text) { return text.ends_with(" r " + buffer); });
    };
    EXPECT_EQ(reads_of("features.weight.gradient"), 0) << instruction;
    EXPECT_EQ(reads_of("features.bias.gradient"), 1) << instruction;
  }
}

TEST(CudaArcFaceDescribe, SampledCentresAreUpdatedRowByRow) {
  ModelOptions options = small();
  options.head = Head::sampled;
  options.sample_rate = 0.25;
  const Program program = described(make_arcface(options), kHalf);
  EXPECT_EQ(operands_of(program, "head.weight.update_rows"),
            (Operands{"master rw head.weight", "momentum rw head.weight.momentum",
                      "d_rows r head.weight.gradient", "samples r head.samples",
                      "sample_count r head.sample_count", "state r state", "overflow r overflow"}));
  for (const std::string& operand : operands_of(program, "update"))
    EXPECT_FALSE(operand.ends_with(" rw head.weight")) << operand;
  const std::map<std::string, Buffer> buffers = buffers_of(program);
  EXPECT_EQ(buffers.at("head.weight.gradient").dims, (std::vector<std::int64_t>{25, 64}));
  EXPECT_FALSE(buffers.contains("head.weight.half"));
  // 25 rows of 64: gradient read once, master and momentum read and written.
  EXPECT_EQ(instruction_named(program, "head.weight.update_rows").work.bytes, 25 * 64 * (2 + 4 * 4));
}

TEST(CudaArcFaceDescribe, CosinesTakeRowsThatBeginAtSixteenBytes) {
  ModelOptions options = small();
  options.classes = 101;
  const Program program = described(make_arcface(options), kHalf);
  EXPECT_EQ(buffers_of(program).at("head.products").bytes, 2U * 104 * 2);
  EXPECT_EQ(instruction_named(program, "head.products").workspace_bytes,
            cuda::margin_copy_bytes(2, 64, DType::f16) + cuda::kMarginGemmWorkspace);
}

TEST(CudaArcFaceDescribe, AShortcutsGradientIsHandedOnAndAddedTo) {
  const Program program = described(make_arcface(small()), kHalf);
  EXPECT_EQ(count_kind<Accumulate>(program), 0U);
  // The gradient of layer4's shortcut passes through all of layer3; each unit adds to it.
  const std::string sum = "layer3.13.bn3.gradient_by.layer4.0.downsample.0";
  EXPECT_EQ(operand_of(program, "layer3.5.bn3.backward", "d_out"), "r " + sum);
  EXPECT_EQ(operands_of(program, "layer3.5.bn3.backward").size(), 10U);
  EXPECT_EQ(operand_of(program, "layer3.5.bn1.backward", "d_in"), "rw " + sum);
  EXPECT_EQ(operand_of(program, "layer3.0.bn3.backward", "d_out"), "r " + sum);
  // in and d_out twice, the sum read and written; [scale, bias, mean, inverse deviation, gradients of scale
  // and bias]; counters of blocks.
  const double pass = 2 * 256 * 4 * 4 * 2.0;
  const auto counters = 2 * static_cast<double>(buffers_of(program).at("norm_counters").bytes);
  EXPECT_EQ(instruction_named(program, "layer3.5.bn1.backward").work.bytes,
            6 * pass + 6 * 256 * 4 + counters);
  EXPECT_EQ(instruction_named(program, "layer3.5.bn3.backward").work.bytes,
            5 * pass + 6 * 256 * 4 + counters);
  // With the shortcut's norm: two inputs and d_out twice, two gradients.
  EXPECT_EQ(instruction_named(program, "layer3.0.bn3.backward").work.bytes,
            8 * pass + 2 * 5 * 256 * 4 + counters);
}

TEST(CudaArcFaceDescribe, APReLUsSlopeAndItsGradientAreOperands) {
  for (const bool one_slope : {false, true}) {
    ModelOptions options = small();
    options.prelu_per_layer = one_slope;
    const Program program = described(make_arcface(options), kHalf);
    EXPECT_EQ(operands_of(program, "bn1.forward"),
              (Operands{"in r conv1", "scale_shift r bn1.scale_shift", "out w bn1", "slope r prelu.weight"}));
    const Operands backward = operands_of(program, "bn1.backward");
    EXPECT_EQ(Operands(backward.begin() + 9, backward.end()),
              (Operands{"scale_shift r bn1.scale_shift", "slope r prelu.weight",
                        "d_slope w prelu.weight.gradient", "counters rw norm_counters"}));
    EXPECT_EQ(buffers_of(program).at("prelu.weight.gradient").bytes, one_slope ? 4U : 64U * 4);
    EXPECT_FALSE(buffers_of(program).contains("bn1.mask"));
  }
}

TEST(CudaArcFaceDescribe, EveryNormBehindAPlainConvolutionHasItsStatisticsFromIt) {
  for (const Backbone backbone : {kIResNet50, kMobileFaceNet}) {
    const Graph graph = make_arcface({.backbone = backbone, .batch = 2});
    const std::vector<cuda::LayerFusion> layers = cuda::plan_fusion(graph, kHalf, *find_target("h200"));
    std::map<ValueId, const Conv*> made_by;
    for (const Op& op : graph.ops)
      if (const Conv* conv = std::get_if<Conv>(&op)) made_by[conv->out] = conv;
    std::size_t gathered = 0;
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
      const BatchNorm* norm = std::get_if<BatchNorm>(&graph.ops[i]);
      if (!norm) continue;
      const auto conv = made_by.find(norm->in);
      const bool is_plain = conv != made_by.end() && conv->second->in != 0 && conv->second->groups == 1;
      EXPECT_EQ(layers[i].statistics_by.has_value(), is_plain) << norm->name;
      EXPECT_FALSE(layers[i].inside_conv || layers[i].backward_by_conv) << norm->name;
      gathered += is_plain;
    }
    EXPECT_EQ(gathered, backbone == kIResNet50 ? 52U : 31U);
  }
}

TEST(CudaArcFaceDescribe, ShortcutsAreNormalisedOnTheWay) {
  const Program program = described(make_arcface(small()), kHalf);
  EXPECT_EQ(operand_of(program, "layer2.0.bn3.forward", "residual"), "r layer2.0.downsample.0");
  EXPECT_EQ(operand_of(program, "layer2.0.bn3.forward", "residual_scale_shift"),
            "r layer2.0.downsample.1.scale_shift");
  EXPECT_FALSE(buffers_of(program).contains("layer2.0.downsample.1"));
}

TEST(CudaArcFaceDescribe, StepsAreCalledDifferently) {
  for (const Backbone backbone : {kIResNet50, kMobileFaceNet}) {
    for (const DescribeOptions& options : {DescribeOptions{}, kHalf, kHalfWithFp32Head}) {
      const Program program = described(make_arcface(small(backbone)), options);
      std::set<std::string> names;
      for (const Instruction& instruction : program.instructions)
        EXPECT_TRUE(names.insert(instruction.name).second) << instruction.name;
    }
  }
}

// Bytes moved per image, and the resulting limit; the head in fp32 with 85,742 classes.
TEST(CudaArcFaceDescribe, MovesWhatPlainConvolutionsAndOwnNormsHaveTo) {
  const DeviceLimits h200 = *find_target("h200");
  const auto bytes_per_image = [&](Backbone backbone, std::int64_t embedding) {
    const Graph graph = make_arcface({.backbone = backbone, .batch = 128, .embedding = embedding});
    double bytes = 0;
    for (const Instruction& instruction : describe(graph, kHalfWithFp32Head, h200).instructions)
      bytes += instruction.work.bytes;
    return bytes / 128;
  };
  EXPECT_LT(bytes_per_image(kIResNet50, 512), 235e6);
  EXPECT_LT(bytes_per_image(kMobileFaceNet, 128), 95e6);
}

}  // namespace
}  // namespace plumb
