// Depthwise convolutions on the emulated GPU against loops in double.
#include "kernels/cuda/depthwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "kernels/cuda/tensor_layout.h"
#include "tests/cuda_host/bound_instruction.h"
#include "tests/cuda_host/guarded_tensor.h"

namespace plumb::cuda {
namespace {

DepthwiseShape shape_of(std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t c, int kernel,
                        int stride, int padding) {
  return {.n = n,
          .h = h,
          .w = w,
          .c = c,
          .out_h = (h + 2 * padding - kernel) / stride + 1,
          .out_w = (w + 2 * padding - kernel) / stride + 1,
          .kernel = kernel,
          .stride = stride,
          .padding = padding};
}

const DepthwiseShape kShapes[] = {
    shape_of(2, 14, 14, 16, 3, 1, 1),  // MobileFaceNet's windows: two rows of blocks
    shape_of(2, 28, 28, 8, 3, 2, 1),  shape_of(3, 7, 7, 24, 3, 1, 1),
    shape_of(3, 7, 7, 24, 3, 2, 1),    // an odd extent, halved
    shape_of(2, 7, 7, 64, 7, 1, 0),    // over a whole image
    shape_of(2, 4, 4, 16, 4, 1, 0),    // … of another size
    shape_of(1, 9, 10, 8, 3, 1, 1),    // rows and columns that no thread's share divides
    shape_of(2, 10, 9, 264, 3, 2, 1),  // more channels than a block has
    shape_of(2, 1, 1, 8, 3, 1, 1),     // all but one tap lie beyond the border
    shape_of(2, 2, 1, 8, 3, 2, 1),    shape_of(1, 11, 9, 8, 5, 3, 2),  // a wide window
    shape_of(1, 9, 9, 8, 2, 3, 0),                                     // pixels that no window covers
    shape_of(40, 7, 7, 8, 3, 1, 1),  // blocks with several columns to a thread
};

using Values = std::vector<double>;
std::size_t in_elements(const DepthwiseShape& s) {
  return static_cast<std::size_t>(s.n * s.h * s.w * s.c);
}
std::size_t out_elements(const DepthwiseShape& s) {
  return static_cast<std::size_t>(s.n * s.out_h * s.out_w * s.c);
}
std::size_t weight_elements(const DepthwiseShape& s) {
  return static_cast<std::size_t>(s.taps() * s.c);
}

// visit(element of the input, of the output, of the weight [kh, kw, c]) for every product.
template <typename Visit>
void for_each_product(const DepthwiseShape& s, const Visit& visit) {
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t y = 0; y < s.out_h; ++y)
      for (std::int64_t x = 0; x < s.out_w; ++x)
        for (std::int64_t tap = 0; tap < s.taps(); ++tap) {
          const std::int64_t row = y * s.stride - s.padding + tap / s.kernel;
          const std::int64_t column = x * s.stride - s.padding + tap % s.kernel;
          if (row < 0 || row >= s.h || column < 0 || column >= s.w) continue;
          const std::int64_t in = ((n * s.h + row) * s.w + column) * s.c;
          const std::int64_t out = ((n * s.out_h + y) * s.out_w + x) * s.c;
          for (std::int64_t c = 0; c < s.c; ++c)
            visit(static_cast<std::size_t>(in + c), static_cast<std::size_t>(out + c),
                  static_cast<std::size_t>(tap * s.c + c));
        }
}

struct Sums {
  Values values, magnitudes;  // of what is added up
  explicit Sums(std::size_t elements) : values(elements, 0.0), magnitudes(elements, 0.0) {}
  void add(std::size_t at, double product) {
    values[at] += product;
    magnitudes[at] += std::abs(product);
  }
};

// What is stored is rounded once; sums in f32 lose a little of the magnitudes that go into them.
void expect_sums(const Values& made, const Sums& wanted, DType stored) {
  const double largest = *std::max_element(wanted.magnitudes.begin(), wanted.magnitudes.end());
  if (stored == DType::f32)
    expect_close(made, wanted.values, stored, 8, largest);
  else
    expect_close(made, wanted.values, stored, 1.01, largest * 0x1p-8);
}

struct Inputs {
  Inputs(DType dtype, const DepthwiseShape& s)
      : in(normal_values(dtype, in_elements(s), 1)),
        weight(normal_values(dtype, weight_elements(s), 2)),
        d_out(normal_values(dtype, out_elements(s), 3)) {}
  Values in, weight, d_out;
};

Values run_forward(DType dtype, const DepthwiseShape& shape, const Inputs& inputs) {
  GuardedTensor in(dtype, inputs.in), weight(dtype, inputs.weight), out(dtype, out_elements(shape));
  launch_depthwise_forward(dtype, shape, in.data(), weight.data(), out.data(), nullptr);
  return out.values();
}

Values run_backward_data(DType dtype, const DepthwiseShape& shape, const Inputs& inputs) {
  GuardedTensor d_out(dtype, inputs.d_out), weight(dtype, inputs.weight), d_in(dtype, in_elements(shape));
  launch_depthwise_backward_data(dtype, shape, d_out.data(), weight.data(), d_in.data(), nullptr);
  return d_in.values();
}

Values run_backward_weights(DType dtype, const DepthwiseShape& shape, const Inputs& inputs) {
  GuardedTensor in(dtype, inputs.in), d_out(dtype, inputs.d_out), d_weight(dtype, weight_elements(shape)),
      partials(DType::f32, depthwise_workspace_bytes(shape, dtype) / sizeof(float));
  launch_depthwise_backward_weights(dtype, shape, in.data(), d_out.data(), partials.as<float>(),
                                    d_weight.data(), nullptr);
  return d_weight.values();
}

template <typename Check>
void for_all_shapes(const Check& check) {
  for (const DepthwiseShape& shape : kShapes) {
    for (DType dtype : kStorageTypes) {
      SCOPED_TRACE(testing::Message()
                   << name_of(dtype) << " " << shape.h << "x" << shape.w << "x" << shape.c << " kernel "
                   << shape.kernel << " stride " << shape.stride << " padding " << shape.padding);
      check(dtype, shape);
    }
  }
}

TEST(Depthwise, ConvolvesEachChannelByItself) {
  for_all_shapes([](DType dtype, const DepthwiseShape& shape) {
    const Inputs inputs(dtype, shape);
    Sums wanted(out_elements(shape));
    for_each_product(shape, [&](std::size_t in, std::size_t out, std::size_t tap) {
      wanted.add(out, inputs.in[in] * inputs.weight[tap]);
    });
    expect_sums(run_forward(dtype, shape, inputs), wanted, dtype);
  });
}

TEST(Depthwise, SendsTheGradientBackThroughTheWindows) {
  for_all_shapes([](DType dtype, const DepthwiseShape& shape) {
    const Inputs inputs(dtype, shape);
    Sums wanted(in_elements(shape));
    for_each_product(shape, [&](std::size_t in, std::size_t out, std::size_t tap) {
      wanted.add(in, inputs.d_out[out] * inputs.weight[tap]);
    });
    expect_sums(run_backward_data(dtype, shape, inputs), wanted, dtype);
  });
}

TEST(Depthwise, AddsUpTheGradientOfTheWeightsOverImagesAndPixels) {
  for_all_shapes([](DType dtype, const DepthwiseShape& shape) {
    const Inputs inputs(dtype, shape);
    Sums wanted(weight_elements(shape));
    for_each_product(shape, [&](std::size_t in, std::size_t out, std::size_t tap) {
      wanted.add(tap, inputs.in[in] * inputs.d_out[out]);
    });
    expect_sums(run_backward_weights(dtype, shape, inputs), wanted, dtype);
  });
}

TEST(Depthwise, RepeatsBitForBitInAnyOrderOfThreads) {
  for (const DepthwiseShape& shape : {shape_of(40, 7, 7, 8, 3, 1, 1), shape_of(70, 4, 4, 8, 4, 1, 0)}) {
    const Inputs inputs(DType::f16, shape);
    const Values first = run_backward_weights(DType::f16, shape, inputs);
    for (int i = 0; i < 3; ++i)  // each launch draws another order
      EXPECT_EQ(run_backward_weights(DType::f16, shape, inputs), first);
  }
}

TEST(Depthwise, DoesNotReadBeyondTheBorder) {
  const DepthwiseShape shape = shape_of(3, 7, 7, 8, 3, 1, 1);
  Inputs inputs(DType::f16, shape);
  // A NaN in the middle image's neighbours must not reach it.
  const std::size_t image = in_elements(shape) / 3;
  for (std::size_t i = 0; i < inputs.in.size(); ++i)
    if (i / image != 1) inputs.in[i] = std::nan("");
  const Values out = run_forward(DType::f16, shape, inputs);
  for (std::size_t i = image; i < 2 * image; ++i) ASSERT_FALSE(std::isnan(out[i])) << i;
}

// MobileFaceNet's at batch 128.
TEST(DepthwisePartition, FillsAGpuAndKeepsPartialSumsSmall) {
  for (const DepthwiseShape& shape :
       {shape_of(128, 56, 56, 64, 3, 1, 1), shape_of(128, 56, 56, 128, 3, 2, 1),
        shape_of(128, 28, 28, 256, 3, 2, 1), shape_of(128, 14, 14, 256, 3, 1, 1),
        shape_of(128, 14, 14, 512, 3, 2, 1), shape_of(128, 7, 7, 256, 3, 1, 1),
        shape_of(128, 7, 7, 512, 7, 1, 0)}) {
    for (DType dtype : {DType::f16, DType::f32}) {
      const DepthwisePartition partition = partition_depthwise(shape, dtype);
      SCOPED_TRACE(testing::Message() << shape.h << "x" << shape.w << "x" << shape.c);
      EXPECT_GE(partition.blocks * partition.items_per_block, partition.items);
      EXPECT_LT((partition.blocks - 1) * partition.items_per_block, partition.items);
      EXPECT_LE(partition.lanes * partition.rows, kDepthwiseThreads);
      EXPECT_GT(partition.tiles * partition.blocks, 30);
      EXPECT_LE(partition.tiles * partition.blocks, 2 * 512);
      EXPECT_LE(depthwise_workspace_bytes(shape, dtype), in_elements(shape) * bytes_of(dtype) / 6);
    }
  }
}

// --- as instructions of a Program
// ---------------------------------------------------------------------------------

Graph one_layer(const DepthwiseShape& s) {
  Graph graph;
  graph.values = {
      {"images", {s.n, s.h, s.w, 3}}, {"in", {s.n, s.h, s.w, s.c}}, {"out", {s.n, s.out_h, s.out_w, s.c}}};
  graph.ops = {Conv{.name = "dw",
                    .in = 1,
                    .out = 2,
                    .kernel = s.kernel,
                    .stride = s.stride,
                    .padding = s.padding,
                    .groups = static_cast<int>(s.c)}};
  return graph;
}

TEST(DepthwiseInstruction, RunsEachKindOfStepOnItsBuffers) {
  const DepthwiseShape shape = shape_of(2, 7, 7, 24, 3, 2, 1);
  const Inputs inputs(DType::f16, shape);
  BoundInstruction forward(one_layer(shape));
  const BufferId out = forward.add(DType::f16, out_elements(shape));
  forward.run(ConvForward{.in = forward.add(DType::f16, inputs.in),
                          .weight = forward.add(DType::f16, inputs.weight),
                          .out = out});
  EXPECT_EQ(forward.values(out), run_forward(DType::f16, shape, inputs));

  BoundInstruction data(one_layer(shape));
  const BufferId d_in = data.add(DType::f16, in_elements(shape));
  data.run(ConvBackwardData{.d_out = data.add(DType::f16, inputs.d_out),
                            .weight = data.add(DType::f16, inputs.weight),
                            .d_in = d_in});
  EXPECT_EQ(data.values(d_in), run_backward_data(DType::f16, shape, inputs));

  BoundInstruction weights(one_layer(shape));
  const BufferId d_weight = weights.add(DType::f16, weight_elements(shape));
  weights.run(ConvBackwardWeights{.in = weights.add(DType::f16, inputs.in),
                                  .d_out = weights.add(DType::f16, inputs.d_out),
                                  .d_weight = d_weight},
              2);
  EXPECT_EQ(weights.values(d_weight), run_backward_weights(DType::f16, shape, inputs));
  EXPECT_EQ(weights.instruction.workspace_bytes, depthwise_workspace_bytes(shape, DType::f16));
}

// What an instruction is refused for, if it is.
std::string refusal(const Graph& graph, bool normalizes_input) {
  BoundInstruction instruction(graph);
  const BufferId any = instruction.add(DType::f32, Values(8, 1.0));
  ConvForward conv{.in = any, .weight = any, .out = any};
  if (normalizes_input) conv.scale_shift = any;
  try {
    instruction.run(conv);
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

TEST(DepthwiseInstruction, RefusesFusionAndLeavesOtherGroupsToTheLibrary) {
  Graph graph = one_layer(shape_of(2, 7, 7, 24, 3, 1, 1));
  EXPECT_NE(refusal(graph, true).find("isn't a plain depthwise convolution"), std::string::npos);
  std::get<Conv>(graph.ops[0]).groups = 12;
  EXPECT_EQ(refusal(graph, false), "no convolution was expected");
}

// Public dims [c, 1, kh, kw]; inside, channels of a tap lie side by side.
TEST(DepthwiseWeights, LieTapByTapAndComeBackAsTheyWere) {
  const std::vector<std::int64_t> dims{5, 1, 3, 3};
  std::vector<float> values(45), back(45);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Buffer buffer{.name = "dw.weight",
                      .dtype = DType::f16,
                      .dims = dims,
                      .bytes = 90,
                      .layout = std::string(kDepthwiseLayout)};
  const std::vector<std::byte> held = to_device_layout(values, dims, buffer, TensorLayout::nhwc);
  from_device_layout(held, dims, buffer, TensorLayout::nhwc, back);
  EXPECT_EQ(back, values);
  Buffer plain = buffer;
  plain.layout.clear();
  from_device_layout(held, {45}, plain, TensorLayout::nhwc, back);
  for (std::size_t tap = 0; tap < 9; ++tap)
    for (std::size_t c = 0; c < 5; ++c) EXPECT_EQ(back[tap * 5 + c], values[c * 9 + tap]);
}

}  // namespace
}  // namespace plumb::cuda
