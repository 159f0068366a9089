// Matrix products beside a library's convolutions, on the emulated GPU.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <memory>

#include "kernels/cuda/conv.h"
#include "kernels/cuda/dense.h"
#include "tests/cuda_host/guarded_tensor.h"

namespace plumb::cuda {
namespace {

TEST(ProductsBesideConvolutions, AnswerPlain1x1ConvolutionsOfStride1) {
  const std::unique_ptr<GemmEngine> products = make_gemm_engine();
  const auto both = with_matrix_products(make_conv_engine({}), *products);
  ConvProblem problem{
      .pass = ConvPass::forward, .n = 3, .h = 5, .w = 4, .c = 8, .out_h = 5, .out_w = 4, .out_c = 16};
  EXPECT_EQ(both->candidates(problem, 1 << 20)->size(), 2U);
  problem.fusion.gathers_statistics = true;
  EXPECT_EQ(both->candidates(problem, 1 << 20)->size(), 1U);
  problem.fusion = {};
  problem.stride = 2, problem.out_h = 3, problem.out_w = 2;
  EXPECT_EQ(both->candidates(problem, 1 << 20)->size(), 1U);
}

// A product that completes a gradient has no other engine, and none where the mask's rows don't fit.
TEST(ProductsBesideConvolutions, CompleteGradientsAlone) {
  const std::unique_ptr<GemmEngine> products = make_gemm_engine();
  const auto both = with_matrix_products(make_conv_engine({}), *products);
  ConvProblem problem{.pass = ConvPass::backward_data,
                      .n = 3,
                      .h = 5,
                      .w = 4,
                      .c = 128,
                      .out_h = 5,
                      .out_w = 4,
                      .out_c = 16,
                      .fusion = {.completes_gradient = true}};
  EXPECT_EQ(both->candidates(problem, 1 << 20)->size(), 1U);
  problem.c = 192;
  const auto none = both->candidates(problem, 1 << 20);
  EXPECT_EQ(none->size(), 0U);
  EXPECT_NE(none->failure().find("lists no algorithm"), std::string::npos) << none->failure();
  problem.c = 128;
  problem.kernel = 3, problem.padding = 1;
  EXPECT_EQ(both->candidates(problem, 1 << 20)->size(), 0U);
}

// d_in = d_out weight + added where the element's bit is 1, against double precision, for pixels that fill no
// tile.
void expect_completed(DType dtype, std::int64_t n, std::int64_t h, std::int64_t w) {
  constexpr std::size_t kIn = 256, kOut = 24;
  const auto pixels = static_cast<std::size_t>(n * h * w);
  const std::vector<double> d_out = normal_values(dtype, pixels * kOut, 1),
                            weight = normal_values(dtype, kOut * kIn, 2),
                            added = normal_values(dtype, pixels * kIn, 3),
                            passed = normal_values(DType::f32, pixels * kIn, 4);
  std::vector<double> wanted(pixels * kIn), bits(pixels * kIn / 8);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (passed[i] <= 0) continue;
    bits[i / 8] += 1 << i % 8;
    wanted[i] = added[i];
    for (std::size_t k = 0; k < kOut; ++k) wanted[i] += d_out[i / kIn * kOut + k] * weight[k * kIn + i % kIn];
  }
  GuardedTensor d_out_held(dtype, d_out), weight_held(dtype, weight), d_in(dtype, wanted.size()),
      added_held(dtype, added), mask(DType::u8, bits);
  const std::array operands{d_out_held.data(), weight_held.data(), d_in.data(), added_held.data(),
                            mask.data()};
  const std::unique_ptr<GemmEngine> products = make_gemm_engine();
  const auto engine = with_matrix_products(make_conv_engine({}), *products);
  const ConvProblem problem{.pass = ConvPass::backward_data,
                            .n = n,
                            .h = h,
                            .w = w,
                            .c = kIn,
                            .out_h = h,
                            .out_w = w,
                            .out_c = kOut,
                            .dtype = dtype,
                            .fusion = {.completes_gradient = true}};
  engine->plan(problem, 1 << 20)->run(nullptr, operands, nullptr);
  expect_close(d_in.values(), wanted, dtype, 2, 4);
  EXPECT_EQ(added_held.values(), added) << "other instructions read it, too";
}

TEST(ProductsBesideConvolutions, CompleteGradientsAsInDoublePrecision) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    SCOPED_TRACE(name_of(dtype));
    expect_completed(dtype, 1, 1, 1);
    expect_completed(dtype, 3, 5, 7);
    expect_completed(dtype, 5, 13, 11);
  }
}

// In all three directions the matrix product equals the convolution.
TEST(ProductsBesideConvolutions, ComputeWhatTheConvolutionDoes) {
  const std::unique_ptr<GemmEngine> products = make_gemm_engine();
  const auto both = with_matrix_products(make_conv_engine({}), *products);
  constexpr std::size_t kPixels = 3 * 5 * 4, kIn = 8, kOut = 16;
  for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_data, ConvPass::backward_weights}) {
    const ConvProblem problem{
        .pass = pass, .n = 3, .h = 5, .w = 4, .c = kIn, .out_h = 5, .out_w = 4, .out_c = kOut};
    // In the order of Instruction::uses().
    std::array<std::size_t, 3> sizes{kPixels * kIn, kOut * kIn, kPixels * kOut};
    if (pass == ConvPass::backward_data) sizes = {kPixels * kOut, kOut * kIn, kPixels * kIn};
    if (pass == ConvPass::backward_weights) sizes = {kPixels * kIn, kPixels * kOut, kOut * kIn};
    std::array<std::vector<float>, 2> results;
    for (std::size_t engine = 0; engine < 2; ++engine) {
      std::array<std::vector<float>, 3> operands;
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < sizes[i]; ++j)
          operands[i].push_back(std::sin(0.7F * static_cast<float>(j + 100 * i)));
      std::vector<std::byte*> addresses;
      for (auto& one : operands) addresses.push_back(reinterpret_cast<std::byte*>(one.data()));
      const auto plan = both->candidates(problem, 1 << 20)->build(engine);
      std::vector<std::byte> workspace(plan->workspace_bytes() + 1);
      plan->run(nullptr, addresses, workspace.data());
      results[engine] = operands[2];
    }
    for (std::size_t i = 0; i < results[0].size(); ++i)
      ASSERT_NEAR(results[0][i], results[1][i], 1e-4) << text_of(problem) << " " << i;
  }
}

}  // namespace
}  // namespace plumb::cuda
