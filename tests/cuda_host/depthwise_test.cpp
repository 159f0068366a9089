// How depthwise convolutions are shared out and their weights laid out; what tests/conformance can't see.
#include "kernels/cuda/own/depthwise.h"

#include <gtest/gtest.h>

#include "kernels/cuda/tensor_layout.h"
#include "tests/cuda_host/bound_instruction.h"

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

using Values = std::vector<double>;

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
      EXPECT_LE(depthwise_workspace_bytes(shape, dtype),
                static_cast<std::size_t>(shape.n * shape.h * shape.w * shape.c) * bytes_of(dtype) / 6);
    }
  }
}

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
