// As large_sizes_test.cpp, of our own convolutions.
#include <gtest/gtest.h>

#include <utility>

#include "kernels/cuda/own/block_end.h"
#include "kernels/cuda/own/conv.h"
#include "tests/cuda_host/corner_blocks.h"
#include "tests/cuda_host/sparse_tensor.h"

namespace plumb::cuda {
namespace {

constexpr std::int64_t kBatch = 5376, kHeight = 112, kWidth = 64,
                       kActivations = kBatch * kHeight * kHeight * kWidth;

class LargeConvolutions : public CornerBlocks {};

WindowShape window_shape_of(int kernel, int stride) {
  const std::int64_t out = kHeight / stride;
  return {.n = kBatch,
          .h = kHeight,
          .w = kHeight,
          .c = kWidth,
          .out_h = out,
          .out_w = out,
          .kernel = kernel,
          .stride = stride,
          .padding = kernel / 2};
}

TEST_F(LargeConvolutions, DepthwiseConvolutionsReachTheLastPixel) {
  SparseTensor in(DType::f16, kActivations), out(DType::f16, kActivations), weight(DType::f16, 25 * kWidth);
  for (const auto& [kernel, stride] : {std::pair(3, 1), {3, 2}, {5, 1}}) {
    SCOPED_TRACE(testing::Message() << kernel << " x " << kernel << " at stride " << stride);
    const WindowShape shape = window_shape_of(kernel, stride);
    const std::int64_t middle = (kernel * kernel / 2 + 1) * kWidth - 1;
    // The middle of the last window: one row and one pixel before the last one at stride 2.
    const std::int64_t in_front = stride == 1 ? 0 : (kHeight + 1) * kWidth;
    const std::int64_t last_out = shape.n * shape.out_h * shape.out_w * kWidth - 1;
    weight.set(middle, 3);
    in.set_from_end(in_front, 2);
    launch_depthwise_forward(DType::f16, shape, in.data(), weight.data(), out.data(), nullptr);
    EXPECT_EQ(out.at(last_out), 6);
    launch_depthwise_backward_data(DType::f16, shape, out.data(), weight.data(), in.data(), nullptr);
    EXPECT_EQ(in.from_end(in_front), 18);
    in.set_from_end(in_front, 0);
    weight.set(middle, 0);
  }
}

// The last tap of the last window reads 2; the gradient there is 3.
void expect_last_weight(const WindowShape& shape, std::int64_t window) {
  SparseTensor in(DType::f32, shape.n * shape.h * shape.w * shape.c),
      d_out(DType::f32, shape.n * shape.out_h * shape.out_w * shape.c),
      d_weight(DType::f32, shape.taps() * shape.c),
      partials(DType::f32,
               static_cast<std::int64_t>(depthwise_workspace_bytes(shape, DType::f32) / sizeof(float)));
  in.set_from_end(0, 2);
  d_out.set_from_end(window * shape.c, 3);
  launch_depthwise_backward_weights(DType::f32, shape, in.data(), d_out.data(), partials.floats(),
                                    d_weight.data(), nullptr);
  EXPECT_EQ(d_weight.from_end(0), 6);
}

TEST_F(LargeConvolutions, DepthwiseWeightsCountTheLastPixel) {
  expect_last_weight(window_shape_of(3, 1), kHeight + 1);  // around the second to last row and column
  expect_last_weight(window_shape_of(3, 2), 0);
  expect_last_weight({.n = 175'000, .h = 7, .w = 7, .c = 512, .out_h = 1, .out_w = 1, .kernel = 7}, 0);
}

// A last weight of 3 meets a last pixel of 2, in the middle of the last window.
TEST_F(LargeConvolutions, FirstOnesReachTheLastPixel) {
  // 4.4e9 elements of images, 1.8e10 of outputs.
  const StemShape shape{.n = 22'000, .h = 224, .w = 224, .out_h = kHeight, .out_w = kHeight};
  constexpr std::int64_t kPixel = (224 + 1) * kStemChannels + 1,
                         kTap = (kStemKernel * kStemKernel / 2) * kStemChannels + 1;  // from the end
  const int multiprocessors = static_cast<int>(stem_tiles(shape) / 16);               // 8 tiles to a block
  SparseTensor in(DType::f16, shape.n * shape.h * shape.w * kStemChannels),
      out(DType::f16, shape.n * shape.out_h * shape.out_w * kStemOutputs), weight(DType::f16, kStemWeights),
      sums(DType::f32, 2 * kStemOutputs),
      partials(DType::f32,
               static_cast<std::int64_t>(stem_weights_workspace(shape, multiprocessors) / sizeof(float)));
  in.set_from_end(kPixel, 2);
  weight.set_from_end(kTap, 3);
  launch_stem_forward(DType::f16, shape, multiprocessors, in.data(), weight.data(), out.data(), sums.floats(),
                      partials.floats(), nullptr);
  EXPECT_EQ(out.from_end(0), 6);
  EXPECT_EQ(partials.at(std::int64_t{2 * kStemOutputs} * stem_blocks(shape, multiprocessors) - 1), 36);
  EXPECT_EQ(sums.at(2 * kStemOutputs - 1), 36);

  SparseTensor d_weight(DType::f16, kStemWeights);
  launch_stem_backward_weights(DType::f16, shape, multiprocessors, in.data(), out.data(), partials.floats(),
                               d_weight.data(), nullptr);
  EXPECT_EQ(partials.from_end(kTap), 12);
}

TEST_F(LargeConvolutions, BlockEndsReachTheLastPixel) {
  const BlockEndShape shape{.pixels = 70'000'000, .channels = 128, .outputs = 64};
  const std::int64_t elements = shape.pixels * shape.channels;
  SparseTensor d_out(DType::f16, elements / 2), added(DType::f16, elements), d_in(DType::f16, elements),
      mask(DType::f16, elements / 16), weight(DType::f16, 64 * 128);
  d_out.set_from_end(0, 2);
  weight.set_from_end(0, 3);
  added.set_from_end(0, 5);
  for (const bool passed : {false, true}) {
    mask.data()[elements / 8 - 1] = passed ? std::byte{0x80} : std::byte{0};
    launch_block_end(DType::f16, shape,
                     {.left = d_out.data(),
                      .weight = weight.data(),
                      .added = added.data(),
                      .mask = mask.data(),
                      .out = d_in.data()},
                     {}, {}, nullptr);
    EXPECT_EQ(d_in.from_end(0), passed ? 11 : 0);
  }
}

}  // namespace
}  // namespace plumb::cuda
