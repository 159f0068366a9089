// Small networks of every layer, over all shapes that a device treats differently: each instruction of their
// training, with everything that the device fuses, against the reference.
#include <cmath>

#include "tests/conformance/device_under_test.h"

namespace plumb {
namespace {

constexpr ValueId kImages = GraphBuilder::kImages;

class Convolutions : public Conformance {};
class Networks : public Conformance {};
class Layers : public Conformance {};

TEST_F(Convolutions, OfManyShapes) {
  struct Case {
    std::int64_t batch, height, width, in_channels, out_channels;
    GraphBuilder::ConvOptions conv;
  };
  for (const Case& c :
       {Case{2, 7, 7, 3, 5, {.kernel = 1}},
        {1, 7, 5, 17, 3, {.kernel = 1}},
        {2, 7, 7, 8, 16, {.kernel = 1}},
        {2, 8, 8, 64, 24, {.kernel = 1, .stride = 2}},
        {1, 5, 5, 64, 64, {.kernel = 3, .padding = 1}},
        {2, 10, 10, 32, 32, {.kernel = 3, .padding = 1}},  // Winograd's tiles reach over the edges
        {3, 9, 9, 24, 8, {.kernel = 3, .stride = 2, .padding = 1}},
        {3, 9, 9, 17, 5, {.kernel = 3, .stride = 2, .padding = 1}},
        {2, 8, 6, 16, 24, {.kernel = 3}},
        {1, 11, 11, 8, 64, {.kernel = 7, .stride = 2, .padding = 3}},
        {1, 1, 1, 64, 16, {.kernel = 1}},
        {2, 1, 1, 16, 16, {.kernel = 3, .padding = 1}},
        {2, 7, 7, 32, 32, {.kernel = 3, .stride = 2, .padding = 1, .groups = 2}},
        {2, 7, 7, 24, 48, {.kernel = 3, .padding = 1, .groups = 3}},
        {2, 7, 7, 6, 12, {.kernel = 3, .padding = 1, .groups = 3}},
        {2, 7, 7, 16, 32, {.kernel = 3, .padding = 1, .groups = 16}}}) {
    SCOPED_TRACE(testing::Message() << c.in_channels << " to " << c.out_channels << " channels, kernel "
                                    << c.conv.kernel << ", groups " << c.conv.groups);
    GraphBuilder b({c.batch, c.height, c.width, 3});
    expect_conforms(b.classify(b.conv(b.conv(kImages, c.in_channels, {}), c.out_channels, c.conv)));
  }
}

// Windows of MobileFaceNet, over two rows of blocks and over a whole image; rows and columns that no thread's
// share divides; more channels than a block has; windows beyond the border, and pixels that none covers;
// several columns to a thread.
TEST_F(Convolutions, DepthwiseOfManyShapes) {
  struct Case {
    std::int64_t batch, height, width, channels;
    int kernel, stride, padding;
  };
  for (const Case& c : {Case{2, 14, 14, 16, 3, 1, 1},
                        {2, 28, 28, 8, 3, 2, 1},
                        {3, 7, 7, 24, 3, 2, 1},
                        {2, 7, 7, 64, 7, 1, 0},
                        {2, 4, 4, 16, 4, 1, 0},
                        {1, 9, 10, 8, 3, 1, 1},
                        {2, 10, 9, 264, 3, 2, 1},
                        {2, 1, 1, 8, 3, 1, 1},
                        {2, 2, 1, 8, 3, 2, 1},
                        {1, 11, 9, 8, 5, 3, 2},
                        {1, 9, 9, 8, 2, 3, 0},
                        {40, 7, 7, 8, 3, 1, 1},
                        {70, 4, 4, 8, 4, 1, 0},
                        {2, 7, 7, 17, 3, 2, 1},
                        {1, 5, 5, 5, 3, 1, 1}}) {
    SCOPED_TRACE(testing::Message() << c.height << " x " << c.width << " x " << c.channels << ", kernel "
                                    << c.kernel);
    GraphBuilder b({c.batch, c.height, c.width, 3});
    const ValueId in = b.conv(kImages, c.channels, {});
    const GraphBuilder::ConvOptions conv{c.kernel, c.stride, c.padding, static_cast<int>(c.channels)};
    const ValueId out = b.conv(in, c.channels, conv);
    expect_conforms(b.loss(b.dense(out, 7)));
  }
}

// A ResNet's first convolution: one tile's columns in part, odd rows, a second tile of columns, windows all
// over the border, full tiles. Its own kernels gather the statistics for a norm.
TEST_F(Convolutions, OfTheImages) {
  for (const Shape& images :
       {Shape{2, 32, 32, 3}, {1, 7, 34, 3}, {1, 5, 260, 3}, {3, 2, 2, 3}, {1, 12, 224, 3}, {1, 13, 13, 3}})
    for (const bool normalized : {false, true}) {
      SCOPED_TRACE(testing::Message()
                   << images.h << " x " << images.w << (normalized ? ", with a norm" : ""));
      GraphBuilder b(images);
      const ValueId out = b.conv(kImages, 64, {.kernel = 7, .stride = 2, .padding = 3});
      expect_conforms(b.loss(b.dense(normalized ? b.norm(out, Activation::relu) : out, 5)));
    }
}

// Blocks of a ResNet, whose ends convolutions normalize, mask and sum up where a device fuses: with a
// projection and without, a stride, pixels that fill no tile, and one pixel.
ValueId bottleneck(GraphBuilder& b, ValueId in, std::int64_t width, std::int64_t channels, int stride) {
  const bool projects = stride > 1 || b.shape(in).c != channels;
  const ValueId first = b.norm(b.conv(in, width, {}), Activation::relu);
  const ValueId second =
      b.norm(b.conv(first, width, {.kernel = 3, .stride = stride, .padding = 1}), Activation::relu);
  const ValueId third = b.conv(second, channels, {});
  return b.norm(third, Activation::relu, projects ? b.norm(b.conv(in, channels, {.stride = stride})) : in);
}

TEST_F(Networks, BlocksOfResNet) {
  struct Case {
    std::int64_t batch, side, width, channels;
    int stride;
  };
  for (const Case& c : {Case{2, 7, 64, 256, 1},
                        {1, 1, 64, 128, 1},
                        {2, 8, 64, 128, 1},
                        {1, 7, 128, 256, 1},
                        {1, 9, 64, 384, 1},
                        {3, 9, 8, 32, 2},
                        {2, 7, 24, 128, 1},
                        {2, 9, 5, 20, 2}}) {
    SCOPED_TRACE(testing::Message() << c.side << " pixels a side, " << c.width << " to " << c.channels
                                    << " channels");
    GraphBuilder b({c.batch, c.side, c.side, 3});
    ValueId out = b.norm(b.conv(kImages, 16, {.kernel = 3, .padding = 1}), Activation::relu);
    for (const int stride : {c.stride, 1, 1}) out = bottleneck(b, out, c.width, c.channels, stride);
    expect_conforms(b.classify(out), {.on_other_gpus = c.batch == 2 && c.side < 9});
  }
}

// A GPU goes back through norm and max pool at once, of even and odd extents.
TEST_F(Networks, StemOfResNet) {
  for (const std::int64_t side : {21, 26}) {
    GraphBuilder b({2, side, side, 3});
    ValueId out = b.norm(b.conv(kImages, 16, {.kernel = 7, .stride = 2, .padding = 3}), Activation::relu);
    out = b.max_pool(out, 3, 2, 1);
    out = bottleneck(b, out, 8, 32, 1);
    expect_conforms(b.classify(bottleneck(b, out, 8, 32, 1), 11), {.iterations = 2, .on_other_gpus = true});
  }
}

// Odd and even extents, windows that the border cuts on every side, rows of fewer windows than a block has,
// more than one tile of channels, more blocks than one combines at once.
TEST_F(Networks, NormsInFrontOfPools) {
  for (const Shape& shape : {Shape{2, 7, 9, 8},
                             {3, 1, 1, 8},
                             {2, 1, 6, 16},
                             {5, 5, 2, 24},
                             {1, 6, 7, 72},
                             {2, 3, 4, 264},
                             {1, 65, 78, 8}}) {
    SCOPED_TRACE(testing::Message() << shape.h << " x " << shape.w << " x " << shape.c);
    GraphBuilder b({shape.n, shape.h, shape.w, 3});
    const ValueId pooled = b.max_pool(b.norm(b.conv(kImages, shape.c, {}), Activation::relu), 3, 2, 1);
    const ValueId twice = b.norm(b.conv(pooled, shape.c, {}), Activation::relu, pooled);  // two gradients
    expect_conforms(b.loss(b.dense(twice, 5)));
  }
}

// Norms in front of convolutions, a PReLU, sums without activation, features of a norm with a fixed scale.
TEST_F(Networks, UnitsOfIResNet) {
  for (const bool slope_per_channel : {true, false})
    for (const std::int64_t width : {17, 24}) {
      GraphBuilder b({3, 8, 8, 3});
      const auto unit = [&](ValueId in, int stride) {
        const ValueId main =
            b.norm_prelu(b.conv(b.norm(in), width, {.kernel = 3, .padding = 1}), slope_per_channel);
        const ValueId residual = stride != 1 ? b.norm(b.conv(in, width, {.stride = stride})) : in;
        return b.norm(b.conv(main, width, {.kernel = 3, .stride = stride, .padding = 1}), Activation::none,
                      residual);
      };
      ValueId out = b.norm_prelu(b.conv(kImages, 8, {.kernel = 3, .padding = 1}), slope_per_channel);
      out = unit(unit(unit(out, 2), 1), 1);
      const ValueId features = b.norm(b.dense(b.dropout(b.norm(out), 0.4), 16));
      b.fix_scale(features);
      expect_conforms(b.loss(b.dense(features, 5)), {.iterations = 2, .first_sample = 5});
    }
}

TEST_F(Networks, AddTheGradientsOfAValueWithThreeReaders) {
  for (const Activation activation : {Activation::none, Activation::relu}) {
    GraphBuilder b({4, 5, 5, 3});
    const ValueId shared = b.norm(b.conv(kImages, 16, {}), activation);
    const ValueId first = b.norm(b.conv(shared, 16, {}), activation, shared);
    expect_conforms(b.classify(b.norm(b.conv(shared, 16, {.kernel = 3, .padding = 1}), activation, first)));
  }
}

// Few channels, odd extents, groups; all the rules of an update, whose decay is large enough to show.
TEST_F(Networks, UpdateByEveryRule) {
  GraphBuilder b({5, 9, 7, 3});
  const ValueId first = b.norm(b.conv(kImages, 24, {.kernel = 3, .padding = 1}), Activation::relu);
  const ValueId second = b.norm(b.conv(first, 24, {.kernel = 3, .padding = 1, .groups = 3}));
  const ValueId third = b.norm(b.conv(second, 24, {.kernel = 3, .padding = 1}), Activation::relu, first);
  Graph graph = b.classify(third, 7);
  for (std::size_t p = 0; p < graph.parameters.size(); p += 2) graph.parameters[p].decays = false;
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::nag})
    for (const double momentum : {0.875, 0.0})
      expect_conforms(graph, {.rule = {optimizer, momentum, 0.05}, .iterations = 3});
}

// Twice the same steps, whatever order threads and blocks run in; and what is written comes back.
TEST_F(Networks, RepeatBitForBit) {
  GraphBuilder b({4, 12, 12, 3});
  const ValueId out =
      bottleneck(b, b.norm(b.conv(kImages, 16, {.kernel = 3, .padding = 1}), Activation::relu), 8, 64, 2);
  const Graph graph = b.classify(b.bottleneck(b.bottleneck(out, 64, 1), 64, 1));
  const TestTensors tensors = random_tensors(graph, 3);
  for (const Offer& offer : offers()) {
    if (!fits(graph, offer) || offer.compute_capability != 0) continue;
    SCOPED_TRACE(offer.name);
    DescribeOptions options = offer.describe;
    options.deterministic = true;  // cuDNN's fused engines add up in any order
    std::vector<Operands> ends;
    for (int run = 0; run < 2; ++run) {
      CheckedProgram program(*device(), graph, {}, describe(graph, options, device()->limits()));
      program.write(tensors);
      for (ParameterId p = 0; p < tensors.parameters.size(); ++p) {
        EXPECT_EQ(program.held(program.program().tensors.parameters[p].master),
                  to_doubles(tensors.parameters[p]));
      }
      program.write({.learning_rate = 0.03F, .loss_scale = offer.loss_scale});
      for (int i = 0; i < 2; ++i)
        for (InstructionId id = 0; id < program.program().instructions.size(); ++id) program.run(id);
      ends.emplace_back();
      for (ParameterId p = 0; p < tensors.parameters.size(); ++p)
        ends.back().push_back(program.held(program.program().tensors.parameters[p].master));
    }
    EXPECT_EQ(ends[0], ends[1]);
  }
}

TEST_F(Networks, KeepOfTheHeadWhatItsPrecisionWants) {
  GraphBuilder b({4, 3, 3, 3});
  const ValueId out = b.norm(b.conv(kImages, 16, {.kernel = 3, .padding = 1}), Activation::relu);
  Graph graph = b.loss(b.dense(b.norm(b.dense(b.dropout(out, 0.4), 24)), 9));
  graph.head_begin = graph.ops.size() - 4;
  expect_conforms(graph, {.iterations = 2});
}

TEST_F(Layers, NormsOfChannelsThatFillNoBlock) {
  for (const std::int64_t channels : {3, 5, 16, 17, 64})
    for (const std::int64_t batch : {1, 3}) {
      GraphBuilder b({batch, 5, 5, 3});
      const ValueId first = b.norm(b.conv(kImages, channels, {.kernel = 3, .padding = 1}), Activation::relu);
      expect_conforms(b.classify(b.norm_prelu(b.norm(b.conv(first, channels, {}), Activation::none, first))));
    }
}

TEST_F(Layers, NormsOfOneElementOrOfConstantChannelsDivideByNothing) {
  for (const std::int64_t channels : {3, 16}) {
    GraphBuilder b({1, 1, 1, 3});
    expect_conforms(b.classify(b.norm(b.conv(kImages, channels, {}), Activation::relu)), {.iterations = 2});
    GraphBuilder constant({2, 3, 3, 3});
    const Graph graph =
        constant.classify(constant.norm(constant.conv(kImages, channels, {}), Activation::relu));
    TestTensors tensors = random_tensors(graph, 7);
    tensors.images.assign(tensors.images.size(), 0);
    expect_conforms(graph, {.iterations = 2}, tensors);
  }
}

TEST_F(Layers, NormsOfTheImagesAndOfVectors) {
  GraphBuilder images({2, 5, 5, 3});
  expect_conforms(images.classify(images.norm(kImages, Activation::relu)));
  for (const std::int64_t outputs : {5, 16, 40}) {
    GraphBuilder b({6, 1, 1, 3});
    expect_conforms(b.loss(b.dense(b.norm(b.dense(b.conv(kImages, 8, {}), outputs)), 4)), {.iterations = 2});
  }
}

TEST_F(Layers, DenseOnesOfManySizes) {
  for (const std::int64_t batch : {1, 5})
    for (const std::int64_t inputs : {3, 16, 17, 64})
      for (const std::int64_t outputs : {2, 17, 1000}) {
        SCOPED_TRACE(testing::Message() << batch << " x " << inputs << " to " << outputs);
        GraphBuilder b({batch, 1, 1, 3});
        expect_conforms(b.loss(b.dense(b.conv(kImages, inputs, {}), outputs)));
      }
}

TEST_F(Layers, DenseOnesOfManyRows) {
  GraphBuilder b({300, 1, 1, 3});
  expect_conforms(b.loss(b.dense(b.conv(kImages, 40, {}), 75)));
}

TEST_F(Layers, DenseOnesReadPixelsInTheOrderChannelsThenRows) {
  for (const std::int64_t channels : {3, 16, 17, 64}) {
    GraphBuilder b({2, 3, 4, 3});
    expect_conforms(b.loss(b.dense(b.conv(kImages, channels, {.kernel = 3, .padding = 1}), 9)),
                    {.iterations = 2});
  }
  GraphBuilder of_images({2, 3, 4, 3});  // not in NHWC on a GPU, where images have more channels
  expect_conforms(of_images.loss(of_images.dense(kImages, 9)), {.iterations = 2});
}

// Channels that no tile divides, pixels that begin anywhere in a block of random numbers, several tiles.
TEST_F(Layers, DropoutDropsTheSameElementsInEveryLayout) {
  for (const Shape& shape :
       {Shape{3, 1, 1, 8}, {2, 1, 1, 512}, {2, 7, 7, 72}, {2, 3, 1, 24}, {1, 9, 15, 136}, {2, 3, 3, 17}})
    for (const double probability : {0.4, 0.0}) {
      GraphBuilder b({shape.n, shape.h, shape.w, 3});
      expect_conforms(b.loss(b.dense(b.dropout(b.conv(kImages, shape.c, {}), probability, 11), 5)),
                      {.iterations = 2, .first_sample = 0xFFFFFFFF});
    }
}

// The step's half of the staging buffer, by the iteration's parity.
TEST_F(Layers, BatchesOfBytesAreNormalized) {
  for (const Shape& images : {Shape{3, 6, 6, 3}, {5, 19, 3, 3}, {2, 17, 32, 3}}) {
    GraphBuilder b(images);
    const Graph graph = b.loss(b.dense(b.conv(kImages, 8, {}), 5));
    for (Offer offer : offers()) {
      if (offer.describe.fp32_head) continue;
      offer.describe.load_batch_every_step = true;
      offer.describe.normalization = {{0.5F, 0.25F, 2}, {-1, 3, 0.5F}};
      CheckedProgram program(*device(), graph, {}, describe(graph, offer.describe, device()->limits()));
      const TestTensors tensors = random_tensors(graph, 7);
      for (ParameterId p = 0; p < tensors.parameters.size(); ++p)
        program.write(program.program().tensors.parameters[p].master, to_doubles(tensors.parameters[p]));
      for (std::uint64_t iteration : {0, 1, 2}) {
        program.write(StepState{.iteration = iteration});
        std::vector<std::uint8_t> pixels(static_cast<std::size_t>(images.elements()));
        for (std::size_t i = 0; i < pixels.size(); ++i)
          pixels[i] = static_cast<std::uint8_t>(i * 37 + 11 * iteration);
        std::vector<std::int32_t> labels(static_cast<std::size_t>(images.n),
                                         static_cast<std::int32_t>(iteration));
        program.stage(pixels, labels);
        for (InstructionId id = 0; id < program.program().instructions.size(); ++id)
          if (program.program().instructions[id].as<PackBatch>()) program.check(id);
      }
    }
  }
}

}  // namespace
}  // namespace plumb
