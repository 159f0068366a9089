// The gradient of a block's end by our own kernel, on the emulated GPU against loops in double.
#include "kernels/cuda/block_end.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "kernels/cuda/conv.h"
#include "kernels/cuda/dense.h"
#include "tests/cuda_host/guarded_tensor.h"

namespace plumb::cuda {
namespace {

ConvProblem problem_of(DType dtype, const BlockEndShape& shape) {
  return {.pass = ConvPass::backward_data,
          .n = 1,
          .h = 1,
          .w = shape.pixels,
          .c = shape.channels,
          .out_h = 1,
          .out_w = shape.pixels,
          .out_c = shape.outputs,
          .dtype = dtype,
          .fusion = {.completes_gradient = true}};
}

struct Candidates {
  std::unique_ptr<GemmEngine> products = make_gemm_engine();
  std::unique_ptr<ConvEngine> engine =
      with_block_end_kernels(with_matrix_products(make_conv_engine({}), *products));
};

void expect_block_end(DType dtype, const BlockEndShape& shape) {
  SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << shape.pixels << " pixels, " << shape.outputs
                                  << " to " << shape.channels << " channels");
  const auto channels = static_cast<std::size_t>(shape.channels);
  const auto outputs = static_cast<std::size_t>(shape.outputs);
  const std::size_t pixels = static_cast<std::size_t>(shape.pixels), elements = pixels * channels;
  const std::vector<double> d_out = normal_values(dtype, pixels * outputs, 1),
                            weight = normal_values(dtype, outputs * channels, 2),
                            added = normal_values(dtype, elements, 3),
                            passed = normal_values(DType::f32, elements, 4);
  std::vector<double> wanted(elements), bits(elements / 8);
  for (std::size_t i = 0; i < elements; ++i) {
    if (passed[i] <= 0) continue;
    bits[i / 8] += 1 << i % 8;
    wanted[i] = added[i];
    for (std::size_t k = 0; k < outputs; ++k)
      wanted[i] += d_out[i / channels * outputs + k] * weight[k * channels + i % channels];
  }
  GuardedTensor d_out_held(dtype, d_out), weight_held(dtype, weight), d_in(dtype, elements),
      added_held(dtype, added), mask(DType::u8, bits);
  const std::array operands{d_out_held.data(), weight_held.data(), d_in.data(), added_held.data(),
                            mask.data()};
  Candidates both;
  const auto plan = both.engine->plan(problem_of(dtype, shape), 0);
  ASSERT_EQ(plan->engine(), kOwnKernel);
  plan->run(nullptr, operands, nullptr);
  expect_close(d_in.values(), wanted, dtype, 1.01);
  EXPECT_EQ(added_held.values(), added) << "other instructions read it, too";
}

TEST(BlockEnd, MatchesLoopsInDouble) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    expect_block_end(dtype, {.pixels = 1, .channels = 128, .outputs = 64});
    expect_block_end(dtype, {.pixels = 128, .channels = 128, .outputs = 64});
    expect_block_end(dtype, {.pixels = 300, .channels = 256, .outputs = 64});
    expect_block_end(dtype, {.pixels = 149, .channels = 256, .outputs = 128});
    expect_block_end(dtype, {.pixels = 70, .channels = 384, .outputs = 320});  // stages are used again
  }
}

// Gradients that overflow where the mask is 0 leave no trace.
TEST(BlockEnd, MasksInfinities) {
  const BlockEndShape shape{.pixels = 2, .channels = 128, .outputs = 64};
  const std::vector<double> large(128, 60000), weights(64 * 128, 60000), none(256);
  GuardedTensor d_out(DType::f16, large), weight(DType::f16, weights), added(DType::f16, none),
      mask(DType::u8, std::vector<double>(32)), d_in(DType::f16, 256);
  launch_block_end(DType::f16, shape,
                   {.d_out = d_out.data(),
                    .weight = weight.data(),
                    .added = added.data(),
                    .mask = mask.data(),
                    .d_in = d_in.data()},
                   nullptr);
  EXPECT_EQ(d_in.values(), none);
}

TEST(BlockEnd, ComesBeforeTheLibraryWhereItFits) {
  Candidates both;
  const auto engines = [&](const ConvProblem& problem) {
    return both.engine->candidates(problem, 1 << 20)->size();
  };
  const ConvProblem problem = problem_of(DType::f16, {.pixels = 20, .channels = 256, .outputs = 64});
  const auto listed = both.engine->candidates(problem, 1 << 20);
  ASSERT_EQ(listed->size(), 2U);
  EXPECT_EQ(listed->engine(0), kOwnKernel);
  EXPECT_NE(listed->engine(1), kOwnKernel);
  EXPECT_EQ(listed->build(1)->engine(), listed->engine(1));
  ConvProblem other = problem;
  other.out_c = 96;
  EXPECT_EQ(engines(other), 1U);
  other = problem, other.c = 192;
  EXPECT_EQ(engines(other), 0U);
  other = problem, other.dtype = DType::f32;
  EXPECT_EQ(engines(other), 1U);
  other = problem, other.fusion = {};
  EXPECT_EQ(both.engine->candidates(other, 1 << 20)->engine(0),
            make_conv_engine({})->candidates(other, 0)->engine(0));
}

}  // namespace
}  // namespace plumb::cuda
