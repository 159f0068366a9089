// Every CPU operation against the double-precision reference, alone and in chains. A 1x1 convolution before
// the operation exposes its input gradient as a weight gradient; a full-size convolution after it gives every
// pixel its own gradient.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/match_reference.h"

namespace plumb {
namespace {

constexpr ValueId kImages = GraphBuilder::kImages;

// Logits from every pixel of `in`, which must be square: full-size convolution, dense layer, loss.
Graph read_out(GraphBuilder& b, ValueId in) {
  const int side = static_cast<int>(b.shape(in).h);
  return b.classify(b.conv(in, 6, {.kernel = side}));
}

TEST(CpuConv, MatchesTheReferenceForManyShapes) {
  struct Case {
    std::int64_t batch, side, in_channels, out_channels;
    GraphBuilder::ConvOptions conv;
  };
  const Case cases[] = {
      {2, 7, 3, 5, {.kernel = 1}},
      {1, 7, 17, 3, {.kernel = 1}},
      {2, 8, 64, 17, {.kernel = 1, .stride = 2}},
      {1, 5, 64, 64, {.kernel = 3, .padding = 1}},
      {2, 7, 5, 64, {.kernel = 3, .padding = 1}},
      {3, 9, 17, 5, {.kernel = 3, .stride = 2, .padding = 1}},
      {2, 8, 17, 17, {.kernel = 3, .stride = 2, .padding = 1}},
      {2, 8, 3, 17, {.kernel = 3}},
      {1, 11, 3, 64, {.kernel = 7, .stride = 2, .padding = 3}},
      {2, 9, 5, 3, {.kernel = 7, .padding = 3}},
      {1, 1, 64, 17, {.kernel = 1}},
      {2, 1, 16, 16, {.kernel = 3, .padding = 1}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message() << "batch " << c.batch << ", side " << c.side << ", channels "
                                    << c.in_channels << " to " << c.out_channels << ", kernel "
                                    << c.conv.kernel << ", stride " << c.conv.stride << ", padding "
                                    << c.conv.padding);
    GraphBuilder b({c.batch, c.side, c.side, 3});
    expect_cpu_matches_reference(
        read_out(b, b.conv(b.conv(kImages, c.in_channels, {}), c.out_channels, c.conv)));
  }
}

TEST(CpuConv, StemReadsImagesOfThreeChannels) {
  for (std::int64_t side : {13, 16}) {
    GraphBuilder b({2, side, side, 3});
    expect_cpu_matches_reference(read_out(b, b.conv(kImages, 64, {.kernel = 7, .stride = 2, .padding = 3})));
  }
}

TEST(CpuConv, OblongImagesKeepTheirAxes) {
  GraphBuilder b({2, 5, 6, 3});  // both sides become 3
  const ValueId in = b.conv(kImages, 17, {.kernel = 3, .padding = 1});
  expect_cpu_matches_reference(read_out(b, b.conv(in, 5, {.kernel = 3, .stride = 2, .padding = 1})));
}

TEST(CpuConv, GroupedAndDepthwiseMatchTheReference) {
  struct Case {
    std::int64_t in_channels, out_channels;
    int groups, stride;
  };
  for (const Case& c :
       {Case{6, 6, 2, 1}, {6, 12, 3, 1}, {32, 32, 2, 2}, {5, 5, 5, 1}, {17, 17, 17, 2}, {16, 32, 16, 1}}) {
    SCOPED_TRACE(testing::Message() << c.in_channels << " to " << c.out_channels << " channels in "
                                    << c.groups << " groups, stride " << c.stride);
    GraphBuilder b({2, 7, 7, 3});
    const ValueId in = b.conv(kImages, c.in_channels, {});
    expect_cpu_matches_reference(read_out(
        b, b.conv(in, c.out_channels, {.kernel = 3, .stride = c.stride, .padding = 1, .groups = c.groups})));
  }
}

TEST(CpuConv, DepthwiseOverAllPixelsLeavesVectors) {
  for (std::int64_t channels : {17, 32}) {
    SCOPED_TRACE(testing::Message() << channels << " channels");
    GraphBuilder b({2, 7, 7, 3});
    const ValueId in = b.conv(kImages, channels, {});
    const int groups = static_cast<int>(channels);
    expect_cpu_matches_reference(b.classify(b.conv(in, channels, {.kernel = 7, .groups = groups})));
  }
}

TEST(CpuPool, MaxMatchesTheReferenceForManyShapes) {
  struct Case {
    std::int64_t batch, height, width, channels;
    int kernel, stride, padding;
  };
  for (const Case& c : {Case{2, 7, 7, 3, 3, 2, 1},
                        {1, 8, 8, 64, 3, 2, 1},
                        {3, 9, 9, 17, 3, 2, 0},
                        {2, 6, 6, 5, 2, 2, 0},
                        {2, 5, 5, 17, 3, 1, 1},
                        {1, 5, 6, 64, 3, 2, 1},
                        {1, 1, 1, 5, 3, 2, 1}}) {
    SCOPED_TRACE(testing::Message() << "batch " << c.batch << ", " << c.height << " x " << c.width << ", "
                                    << c.channels << " channels, kernel " << c.kernel << ", stride "
                                    << c.stride << ", padding " << c.padding);
    GraphBuilder b({c.batch, c.height, c.width, 3});
    const ValueId in = b.conv(kImages, c.channels, {});
    expect_cpu_matches_reference(read_out(b, b.max_pool(in, c.kernel, c.stride, c.padding)));
  }
}

TEST(CpuPool, PaddingNeverWinsOverNegativeValues) {
  GraphBuilder b({1, 4, 4, 3});
  const Graph graph = read_out(b, b.max_pool(b.conv(kImages, 5, {}), 3, 2, 1));
  TestTensors tensors = random_tensors(graph, 7);
  for (float& weight : tensors.parameters[0]) weight = -std::abs(weight);
  for (float& pixel : tensors.images) pixel = 1 + std::abs(pixel);
  expect_cpu_matches_reference(graph, tensors);
}

TEST(CpuPool, GlobalAverageMatchesTheReference) {
  for (std::int64_t side : {1, 2, 7})
    for (std::int64_t channels : {3, 17, 64}) {
      SCOPED_TRACE(testing::Message() << "side " << side << ", " << channels << " channels");
      GraphBuilder b({2, side, side, 3});
      const ValueId average = b.global_average(b.conv(kImages, channels, {.kernel = 3, .padding = 1}));
      expect_cpu_matches_reference(b.classify(average));
    }
}

TEST(CpuDense, MatchesTheReferenceForManySizes) {
  for (std::int64_t batch : {1, 5})
    for (std::int64_t inputs : {3, 17, 64})
      for (std::int64_t outputs : {2, 17, 1000}) {
        SCOPED_TRACE(testing::Message() << "batch " << batch << ", " << inputs << " to " << outputs);
        GraphBuilder b({batch, 1, 1, 3});
        expect_cpu_matches_reference(b.loss(b.dense(b.conv(kImages, inputs, {}), outputs)));
      }
}

TEST(CpuDense, ReadsImagesAndChains) {
  GraphBuilder b({3, 1, 1, 5});
  expect_cpu_matches_reference(b.loss(b.dense(b.dense(kImages, 9), 4)));
}

TEST(CpuDense, ReadsThePixelsOfAnImageInTheOrderChannelsThenRows) {
  for (std::int64_t channels : {3, 16, 17, 64}) {
    SCOPED_TRACE(testing::Message() << channels << " channels");
    GraphBuilder b({2, 3, 4, 3});
    const ValueId in = b.conv(kImages, channels, {.kernel = 3, .padding = 1});
    expect_cpu_matches_reference(b.loss(b.dense(in, 9)), {.iterations = 2});
  }
}

TEST(CpuDense, ReadsThePixelsOfTheImagesThemselves) {
  GraphBuilder b({2, 3, 4, 3});
  expect_cpu_matches_reference(b.loss(b.dense(kImages, 9)), {.iterations = 2});
}

TEST(CpuDropout, DropsTheSameElementsInEveryLayout) {
  for (std::int64_t channels : {3, 16, 17, 64})
    for (std::int64_t side : {1, 3, 7}) {
      SCOPED_TRACE(testing::Message() << channels << " channels, side " << side);
      GraphBuilder b({2, side, side, 3});
      const ValueId in = b.conv(kImages, channels, {});
      expect_cpu_matches_reference(read_out(b, b.dropout(in, 0.4)), {.iterations = 3, .first_sample = 5});
    }
}

TEST(CpuDropout, KeepsEverythingWithProbabilityZero) {
  GraphBuilder dropped({2, 4, 4, 3}), whole({2, 4, 4, 3});
  const Graph with = read_out(dropped, dropped.dropout(dropped.conv(kImages, 5, {}), 0));
  const Graph without = read_out(whole, whole.conv(kImages, 5, {}));
  const TestTensors tensors = random_tensors(with, 7);
  EXPECT_EQ(run_on_cpu(with, tensors, {}).losses, run_on_cpu(without, tensors, {}).losses);
}

TEST(CpuDropout, OfABatchIsThatOfItsHalvesOnTwoRanks) {
  const auto graph_of = [](std::int64_t batch) {
    GraphBuilder b({batch, 3, 3, 3});
    return b.loss(b.dense(b.dropout(b.conv(kImages, 17, {}), 0.5), 6));
  };
  const TestTensors whole = random_tensors(graph_of(4), 7);
  const double loss = run_on_cpu(graph_of(4), whole, {.first_sample = 8}).losses[0];
  double halves = 0;
  for (std::size_t rank : {0, 1}) {
    TestTensors half = whole;
    const auto images = static_cast<std::ptrdiff_t>(whole.images.size() / 2);
    half.images.assign(whole.images.begin() + static_cast<std::ptrdiff_t>(rank) * images,
                       whole.images.begin() + static_cast<std::ptrdiff_t>(rank + 1) * images);
    half.labels = {whole.labels[2 * rank], whole.labels[2 * rank + 1]};
    halves += run_on_cpu(graph_of(2), half, {.first_sample = 8 + 2 * rank}).losses[0] / 2;
  }
  EXPECT_NEAR(halves, loss, 1e-6 * loss);
}

TEST(CpuLoss, MatchesTheReferenceForEverySmoothing) {
  for (double smoothing : {0.0, 0.1, 1.0}) {
    SCOPED_TRACE(testing::Message() << "smoothing " << smoothing);
    GraphBuilder b({4, 1, 1, 3});
    expect_cpu_matches_reference(b.loss(b.dense(kImages, 13), smoothing), {.iterations = 3});
  }
}

// exp(300) overflows fp32: the largest logit must be subtracted first.
TEST(CpuLoss, LargeLogitsNeitherOverflowNorVanish) {
  GraphBuilder b({2, 1, 1, 1});
  const Graph graph = b.loss(b.dense(kImages, 6), 0.1);
  TestTensors tensors = random_tensors(graph, 7);
  tensors.parameters[0] = {300, -300, 299, 0, 150, -20};
  tensors.images = {1, -1};
  tensors.labels = {2, 0};
  expect_cpu_matches_reference(graph, tensors);
}

TEST(CpuBlocks, BottleneckWithProjectionThenIdentityMatchesTheReference) {
  for (std::int64_t batch : {1, 2}) {
    SCOPED_TRACE(testing::Message() << "batch " << batch);
    GraphBuilder b({batch, 9, 9, 3});
    const auto bottleneck = [&](ValueId in, std::int64_t width, int stride) {
      ValueId main = b.norm(b.conv(in, width, {}), Activation::relu);
      main = b.norm(b.conv(main, width, {.kernel = 3, .stride = stride, .padding = 1}), Activation::relu);
      main = b.conv(main, 4 * width, {});
      const bool projects = stride != 1 || b.shape(in).c != 4 * width;
      const ValueId residual = projects ? b.norm(b.conv(in, 4 * width, {.stride = stride})) : in;
      return b.norm(main, Activation::relu, residual);
    };
    const ValueId stem = b.norm(b.conv(kImages, 8, {.kernel = 3, .padding = 1}), Activation::relu);
    ValueId out = bottleneck(stem, 5, 2);
    out = bottleneck(out, 5, 1);
    out = bottleneck(out, 5, 1);
    expect_cpu_matches_reference(read_out(b, out));
  }
}

// A unit of an IResNet and its end: norms before convolutions, a PReLU, sums without activation, and features
// from a norm with a fixed scale.
TEST(CpuBlocks, UnitsOfIResNetMatchTheReference) {
  for (bool slope_per_channel : {true, false}) {
    SCOPED_TRACE(testing::Message() << (slope_per_channel ? "a slope per channel" : "one slope"));
    GraphBuilder b({3, 8, 8, 3});
    const auto unit = [&](ValueId in, std::int64_t width, int stride) {
      ValueId main = b.conv(b.norm(in), width, {.kernel = 3, .padding = 1});
      main = b.norm_prelu(main, slope_per_channel);
      main = b.conv(main, width, {.kernel = 3, .stride = stride, .padding = 1});
      const ValueId residual = stride != 1 ? b.norm(b.conv(in, width, {.stride = stride})) : in;
      return b.norm(main, Activation::none, residual);
    };
    ValueId out = b.norm_prelu(b.conv(kImages, 6, {.kernel = 3, .padding = 1}), slope_per_channel);
    out = unit(unit(unit(out, 17, 2), 17, 1), 17, 1);
    const ValueId features = b.norm(b.dense(b.dropout(b.norm(out), 0.4), 12));
    b.fix_scale(features);
    expect_cpu_matches_reference(b.loss(b.dense(features, 5)), {.iterations = 2});
  }
}

TEST(CpuBlocks, StemOfResNetMatchesTheReference) {
  GraphBuilder b({2, 21, 21, 3});
  const ValueId conv = b.conv(kImages, 16, {.kernel = 7, .stride = 2, .padding = 3});
  expect_cpu_matches_reference(b.classify(b.max_pool(b.norm(conv, Activation::relu), 3, 2, 1)));
}

TEST(CpuBlocks, GradientsOfAValueWithThreeReadersAdd) {
  GraphBuilder b({2, 5, 5, 3});
  const ValueId shared = b.norm(b.conv(kImages, 6, {}), Activation::relu);
  const ValueId first = b.norm(b.conv(shared, 6, {}), Activation::relu, shared);
  const ValueId second = b.norm(b.conv(shared, 6, {.kernel = 3, .padding = 1}), Activation::relu, first);
  expect_cpu_matches_reference(read_out(b, second));
}

}  // namespace
}  // namespace plumb
