// plan_fusion() on small Graphs, layer by layer, and its explanations.
#include <gtest/gtest.h>

#include <optional>

#include "kernels/cuda/plan/fusion.h"
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

// Two convolutions and a norm that adds the images, whose output the reader and another such norm read.
std::vector<LayerFusion> plan_of_end(std::int64_t channels, const GraphBuilder::ConvOptions& reader,
                                     Activation activation = Activation::relu, bool third_reader = false,
                                     Precision precision = Precision::fp16) {
  GraphBuilder builder({.n = 2, .h = 8, .w = 8, .c = channels});
  const ValueId images = GraphBuilder::kImages;
  const ValueId end = builder.norm(builder.conv(images, channels, {}), activation, images);
  const ValueId read = builder.norm(builder.conv(end, channels, reader), Activation::relu);
  if (third_reader) builder.norm(builder.conv(end, channels, {}), Activation::relu, read);
  const ValueId next = builder.norm(builder.conv(read, channels, {}), Activation::relu, end);
  return plan_fusion(builder.classify(next), {.precision = precision}, *find_target("h200"));
}

TEST(FusionPlan, AConvolutionCompletesTheGradientOfABlocksEndOnlyIfItIsAProductThatComesLast) {
  const auto completes = [](const std::vector<LayerFusion>& layers) {
    EXPECT_EQ(layers[1].masked_by_conv, layers[2].block_end == std::size_t{1});
    EXPECT_EQ(layers[1].masked_by_conv, layers[2].sums_for_end);
    return layers[1].masked_by_conv;
  };
  EXPECT_TRUE(completes(plan_of_end(128, {})));
  EXPECT_FALSE(completes(plan_of_end(64, {}))) << "masks of cuBLASLt have rows of 128 bits";
  EXPECT_FALSE(completes(plan_of_end(128, {.kernel = 3, .padding = 1})));
  EXPECT_FALSE(completes(plan_of_end(128, {.groups = 2})));
  EXPECT_FALSE(completes(plan_of_end(128, {}, Activation::none)));
  EXPECT_FALSE(completes(plan_of_end(128, {}, Activation::relu, /*third_reader=*/true)));
  EXPECT_TRUE(completes(plan_of_end(128, {}, Activation::relu, false, Precision::bf16)));
  EXPECT_FALSE(completes(plan_of_end(128, {}, Activation::relu, false, Precision::fp32)));
}

// A block's end and the convolution that completes its gradient, with what decides whether the end does
// without the output of its own convolution.
struct Bottleneck {
  std::int64_t inputs = 64, outputs = 128;
  GraphBuilder::ConvOptions product = {};
  std::optional<Activation> in_front = Activation::relu;  // none: the convolution reads the images
  bool input_has_another_reader = false, output_has_another_reader = false;
};
bool stores_no_product(const Bottleneck& one) {
  GraphBuilder builder({.n = 2, .h = 8, .w = 8, .c = one.in_front ? one.outputs : one.inputs});
  const ValueId images = GraphBuilder::kImages;
  const ValueId shortcut = one.in_front ? images : builder.norm(builder.conv(images, one.outputs, {}));
  const ValueId in =
      one.in_front ? builder.norm(builder.conv(images, one.inputs, {}), *one.in_front) : images;
  const ValueId product = builder.conv(in, one.outputs, one.product);
  const ValueId end = builder.norm(product, Activation::relu, shortcut);
  const ValueId read = builder.norm(builder.conv(end, 64, {}), Activation::relu);
  ValueId next = builder.norm(builder.conv(read, one.outputs, {}), Activation::relu, end);
  if (one.input_has_another_reader)
    next = builder.norm(builder.conv(in, one.outputs, {}), Activation::relu, next);
  if (one.output_has_another_reader) next = builder.norm(product, Activation::relu, next);
  const Graph graph = builder.classify(next);
  for (const LayerFusion& layer : plan_of(graph))
    if (layer.product && std::get<Conv>(graph.ops[*layer.product]).out == product) return true;
  return false;
}

TEST(FusionPlan, ABlockEndsWithoutItsConvolutionsOutputOnlyIfThatIsAProductOfAnActivatedNorm) {
  EXPECT_TRUE(stores_no_product({}));
  EXPECT_TRUE(stores_no_product({.inputs = 192, .outputs = 512}));
  EXPECT_FALSE(stores_no_product({.inputs = 32})) << "inputs come in 64s";
  EXPECT_FALSE(stores_no_product({.outputs = 192})) << "outputs come in 128s";
  EXPECT_FALSE(stores_no_product({.inputs = 128})) << "the input is as large as the output";
  EXPECT_FALSE(stores_no_product({.inputs = 1088, .outputs = 2304})) << "at most 1024 inputs";
  EXPECT_FALSE(stores_no_product({.outputs = 4224})) << "at most 4096 outputs";
  EXPECT_FALSE(stores_no_product({.product = {.kernel = 3, .padding = 1}}));
  EXPECT_FALSE(stores_no_product({.product = {.groups = 2}}));
  EXPECT_FALSE(stores_no_product({.in_front = Activation::none}));
  EXPECT_FALSE(stores_no_product({.in_front = {}}));
  EXPECT_FALSE(stores_no_product({.input_has_another_reader = true}));
  EXPECT_FALSE(stores_no_product({.output_has_another_reader = true}));
}

TEST(FusionText, SaysWhatBecameOfEachLayerAndWhyNotMore) {
  const Graph graph = make_resnet50({.batch = 2, .image_size = 64});
  const std::string hopper = plumb::fusion_text(graph, {.precision = Precision::fp16}, *find_target("h200"));
  EXPECT_NE(hopper.find("normalizes layer1.0.bn1 (ConvBNfprop), statistics"), std::string::npos) << hopper;
  EXPECT_NE(hopper.find("never stored: ends the block with layer1.0.bn3"), std::string::npos);
  EXPECT_NE(hopper.find("from products, with the sums of layer1.0.bn2"), std::string::npos);
  EXPECT_NE(hopper.find("statistics by products of layer1.0.conv3's input"), std::string::npos);
  EXPECT_NE(hopper.find("20 end a block without their convolution's output"), std::string::npos);
  EXPECT_NE(hopper.find("adds, masks and sums the gradient of layer1.1.bn3"), std::string::npos);
  EXPECT_NE(hopper.find("15 have their output's gradient summed and masked by one"), std::string::npos);
  EXPECT_NE(hopper.find("with the norm that it is added to"), std::string::npos);
  DescribeOptions stored{.precision = Precision::fp16};
  for (std::size_t op = 0; op < graph.ops.size(); ++op)
    stored.plain.push_back({op, FusedPattern::product_norm, "plain is faster"});
  const std::string ampere = plumb::fusion_text(graph, stored, *find_target("a100-80gb"));
  EXPECT_NE(ampere.find("plain is faster; no convolution adds its residual"), std::string::npos) << ampere;
  const std::string bf16 = plumb::fusion_text(graph, {.precision = Precision::bf16}, *find_target("h200"));
  EXPECT_NE(bf16.find("adds, masks and sums the gradient of layer1.1.bn3"), std::string::npos) << bf16;
  EXPECT_NE(bf16.find("bf16 has no fused engine of cuDNN"), std::string::npos) << bf16;
  const std::string volta =
      plumb::fusion_text(graph, {.precision = Precision::fp16}, *find_target("v100-16gb"));
  EXPECT_NE(volta.find("masks and sums its output's gradient"), std::string::npos) << volta;
  EXPECT_EQ(volta.find("with the sums of"), std::string::npos) << volta;
  EXPECT_EQ(plumb::fusion_text(graph, {.precision = Precision::bf16}, *find_target("v100-16gb")),
            "fusion on v100-16gb, bf16: none, bf16 has no fused engine of cuDNN\n");
  EXPECT_EQ(plumb::fusion_text(graph, {.fuse = false}, *find_target("h200")),
            "fusion on h200, fp32: none, --fusion is off\n");
  EXPECT_EQ(plumb::fusion_text(graph, {}, *find_target("cpu")), "");
}

TEST(FusionText, GivesTheReasonsAgainstBothPatternsOfABlocksEnd) {
  const Graph graph = make_resnet50({.batch = 2, .image_size = 64});
  DescribeOptions options{.precision = Precision::fp16};
  for (std::size_t op = 0; op < graph.ops.size(); ++op)
    for (const FusedPattern pattern : {FusedPattern::block_end_gradient, FusedPattern::product_norm})
      options.plain.push_back({op, pattern, "no algorithm"});
  const std::string text = plumb::fusion_text(graph, options, *find_target("h200"));
  EXPECT_NE(text.find("no algorithm; no convolution adds its residual"), std::string::npos) << text;
}

}  // namespace
}  // namespace plumb::cuda
