// Batch norm on the CPU device, in the layouts chosen by the neighbouring oneDNN convolutions.
#include <gtest/gtest.h>

#include "tests/kernels/match_reference.h"

namespace plumb {
namespace {

constexpr ValueId kImages = GraphBuilder::kImages;

// Logits from every pixel of `in`, which must be square: full-size convolution, dense layer, loss.
Graph read_out(GraphBuilder& b, ValueId in) {
  const int side = static_cast<int>(b.shape(in).h);
  return b.classify(b.conv(in, 6, {.kernel = side}));
}

TEST(CpuNorm, MatchesTheReferenceWithAndWithoutRelu) {
  for (Activation activation : {Activation::none, Activation::relu})
    for (std::int64_t channels : {3, 5, 17, 64})
      for (std::int64_t batch : {1, 3}) {
        SCOPED_TRACE(testing::Message() << channels << " channels, batch " << batch << ", "
                                        << (activation == Activation::relu ? "relu" : "no activation"));
        GraphBuilder b({batch, 5, 5, 3});
        const ValueId in = b.conv(kImages, channels, {.kernel = 3, .padding = 1});
        expect_cpu_matches_reference(read_out(b, b.norm(in, activation)), {.iterations = 2});
      }
}

TEST(CpuNorm, AddsAResidualWithAndWithoutRelu) {
  for (Activation activation : {Activation::none, Activation::relu})
    for (std::int64_t channels : {5, 64}) {
      SCOPED_TRACE(testing::Message() << channels << " channels, "
                                      << (activation == Activation::relu ? "relu" : "no activation"));
      GraphBuilder b({2, 5, 5, 3});
      const ValueId residual = b.conv(kImages, channels, {});
      const ValueId in = b.conv(kImages, channels, {.kernel = 3, .padding = 1});
      expect_cpu_matches_reference(read_out(b, b.norm(in, activation, residual)));
    }
}

TEST(CpuNorm, OfTheImagesThemselves) {
  GraphBuilder b({2, 5, 5, 3});
  expect_cpu_matches_reference(read_out(b, b.norm(kImages, Activation::relu)), {.iterations = 2});
}

TEST(CpuNorm, OneElementPerChannelDividesByNothing) {
  for (std::int64_t channels : {3, 16, 17}) {
    SCOPED_TRACE(testing::Message() << channels << " channels");
    GraphBuilder b({1, 1, 1, 3});
    expect_cpu_matches_reference(b.classify(b.norm(b.conv(kImages, channels, {}), Activation::relu)),
                                 {.iterations = 2});
  }
}

TEST(CpuNorm, ConstantChannelsDivideByNothing) {
  GraphBuilder b({2, 3, 3, 3});
  const Graph graph = b.classify(b.norm(b.conv(kImages, 5, {}), Activation::relu));
  TestTensors tensors = random_tensors(graph, 7);
  tensors.images.assign(tensors.images.size(), 0.0f);
  expect_cpu_matches_reference(graph, tensors, {.iterations = 2});
}

TEST(CpuNorm, MatchesTheReferenceWithPrelu) {
  for (bool slope_per_channel : {true, false})
    for (std::int64_t channels : {3, 17, 64}) {
      SCOPED_TRACE(testing::Message()
                   << channels << " channels, " << (slope_per_channel ? "a slope each" : "one slope"));
      GraphBuilder b({2, 5, 5, 3});
      const ValueId in = b.conv(kImages, channels, {.kernel = 3, .padding = 1});
      expect_cpu_matches_reference(read_out(b, b.norm_prelu(in, slope_per_channel)), {.iterations = 2});
    }
}

TEST(CpuNorm, AddsTwoGradientsOfItsOutput) {
  for (Activation activation : {Activation::none, Activation::relu, Activation::prelu})
    for (bool has_residual : {false, true}) {
      if (has_residual && activation == Activation::prelu) continue;
      SCOPED_TRACE(testing::Message()
                   << "activation " << static_cast<int>(activation) << ", residual " << has_residual);
      GraphBuilder b({2, 5, 5, 3});
      const ValueId in = b.conv(kImages, 17, {.kernel = 3, .padding = 1});
      std::optional<ValueId> residual;
      if (has_residual) residual = b.conv(kImages, 17, {});
      const ValueId out =
          activation == Activation::prelu ? b.norm_prelu(in) : b.norm(in, activation, residual);
      expect_cpu_matches_reference(read_out(b, b.norm(b.conv(out, 17, {}), Activation::relu, out)));
    }
}

TEST(CpuNorm, OfVectorsBehindADenseLayer) {
  for (std::int64_t outputs : {5, 16, 40}) {
    SCOPED_TRACE(testing::Message() << outputs << " outputs");
    GraphBuilder b({6, 1, 1, 3});
    expect_cpu_matches_reference(b.loss(b.dense(b.norm(b.dense(kImages, outputs)), 4)), {.iterations = 2});
  }
}

TEST(CpuNorm, LeavesAFixedScaleAsItIs) {
  GraphBuilder b({6, 1, 1, 3});
  const ValueId features = b.norm(b.dense(kImages, 20));
  b.fix_scale(features);
  expect_cpu_matches_reference(b.loss(b.dense(features, 4)), {.iterations = 3});
}

}  // namespace
}  // namespace plumb
