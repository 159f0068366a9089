// plan_fusion() on small Graphs, layer by layer, and its explanations.
#include <gtest/gtest.h>

#include "kernels/cuda/fusion.h"
#include "models/resnet50.h"
#include "tests/kernels/graph_builder.h"

namespace plumb::cuda {
namespace {

std::vector<LayerFusion> plan_of(const Graph& graph) {
  return plan_fusion(graph, {.precision = Precision::fp16}, *find_target("h200"));
}
GraphBuilder sixteen_channels() {
  return GraphBuilder({.n = 2, .h = 8, .w = 8, .c = 16});
}

TEST(FusionPlan, ANormThatTwoReadIsStored) {
  GraphBuilder builder = sixteen_channels();
  const ValueId normed = builder.norm(builder.conv(GraphBuilder::kImages, 16, {}), Activation::relu);
  const ValueId next = builder.conv(normed, 16, {.kernel = 3, .padding = 1});
  const ValueId out = builder.norm(next, Activation::relu, normed);
  const LayerFusion layer = plan_of(builder.classify(out))[1];
  EXPECT_TRUE(layer.statistics_by);
  EXPECT_TRUE(layer.stored);
  EXPECT_FALSE(layer.inside_conv);
  EXPECT_FALSE(layer.backward_by_conv);
  EXPECT_EQ(layer.why_not_more, "several read its output");
}

TEST(FusionPlan, ANormWhoseReaderHasNoEngineIsStored) {
  struct Reader {
    std::int64_t channels;
    GraphBuilder::ConvOptions options;
  };
  for (const Reader& reader :
       {Reader{12, {}}, Reader{16, {.groups = 2}}, Reader{16, {.kernel = 5, .padding = 2}}}) {
    GraphBuilder builder = sixteen_channels();
    const ValueId normed = builder.norm(builder.conv(GraphBuilder::kImages, 16, {}), Activation::relu);
    const ValueId next =
        builder.norm(builder.conv(normed, reader.channels, reader.options), Activation::relu);
    const std::vector<LayerFusion> layers = plan_of(builder.classify(next));
    EXPECT_TRUE(layers[1].stored);
    EXPECT_FALSE(layers[1].backward_by_conv);
    EXPECT_FALSE(layers[2].forward.gathers_statistics || layers[2].forward.normalizes_input);
    EXPECT_FALSE(layers[3].statistics_by);
  }
}

TEST(FusionPlan, ANormWithoutReluKeepsAStepOfItsOwn) {
  GraphBuilder builder = sixteen_channels();
  const ValueId normed = builder.norm(builder.conv(GraphBuilder::kImages, 16, {}), Activation::none);
  const LayerFusion layer = plan_of(builder.classify(builder.norm(builder.conv(normed, 16, {}))))[1];
  EXPECT_TRUE(layer.statistics_by);
  EXPECT_FALSE(layer.inside_conv);
  EXPECT_FALSE(layer.backward_by_conv);
}

TEST(FusionPlan, AResidualHasNoStatistics) {
  GraphBuilder builder = sixteen_channels();
  const ValueId residual = builder.conv(GraphBuilder::kImages, 16, {});
  const ValueId in = builder.conv(GraphBuilder::kImages, 16, {});
  const std::vector<LayerFusion> layers =
      plan_of(builder.classify(builder.norm(in, Activation::relu, residual)));
  EXPECT_FALSE(layers[0].forward.gathers_statistics);
  EXPECT_TRUE(layers[1].forward.gathers_statistics);
}

TEST(FusionPlan, ABlockThatA3x3ConvolutionReadsEndsInAStepOfItsOwn) {
  for (const int kernel : {1, 3}) {
    GraphBuilder builder = sixteen_channels();
    const ValueId normed =
        builder.norm(builder.conv(GraphBuilder::kImages, 16, {}), Activation::relu, GraphBuilder::kImages);
    const ValueId next =
        builder.norm(builder.conv(normed, 16, {.kernel = kernel, .padding = kernel / 2}), Activation::relu);
    EXPECT_EQ(plan_of(builder.classify(next))[1].inside_conv, kernel == 1);
  }
}

TEST(FusionText, SaysWhatBecameOfEachLayerAndWhyNotMore) {
  const Graph graph = make_resnet50({.batch = 2, .image_size = 64});
  const std::string hopper = plumb::fusion_text(graph, {.precision = Precision::fp16}, *find_target("h200"));
  EXPECT_NE(hopper.find("normalises layer1.0.bn2 (ConvBNfprop), statistics"), std::string::npos) << hopper;
  EXPECT_NE(hopper.find("ends layer1.1.bn3"), std::string::npos);
  EXPECT_NE(hopper.find("with the norm that it is added to"), std::string::npos);
  const std::string ampere =
      plumb::fusion_text(graph, {.precision = Precision::fp16}, *find_target("a100-80gb"));
  EXPECT_NE(ampere.find("sm_80 has no engine that adds a residual"), std::string::npos);
  EXPECT_EQ(plumb::fusion_text(graph, {.precision = Precision::bf16}, *find_target("h200")),
            "fusion on h200, bf16: none, bf16 has no fused engine\n");
  EXPECT_EQ(plumb::fusion_text(graph, {.fuse = false}, *find_target("h200")),
            "fusion on h200, fp32: none, --fusion is off\n");
  EXPECT_EQ(plumb::fusion_text(graph, {}, *find_target("cpu")), "");
}

}  // namespace
}  // namespace plumb::cuda
