// Matrix products next to a library's convolutions, and the kernel of block ends.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/own/block_end.h"
#include "kernels/cuda/vendors/conv.h"
#include "kernels/cuda/vendors/dense.h"

namespace plumb::cuda {
namespace {

TEST(ProductsBesideConvolutions, AnswerPlain1x1ConvolutionsOfStride1) {
  const ConvEngine both = with_other_candidates(make_conv_engine({}), make_gemm_engine(), 1);
  ConvProblem problem{
      .pass = ConvPass::forward, .n = 3, .h = 5, .w = 4, .c = 8, .out_h = 5, .out_w = 4, .out_c = 16};
  EXPECT_EQ(both.candidates(problem, 1 << 20).engines.size(), 2U);
  problem.fusion.gathers_statistics = true;
  EXPECT_EQ(both.candidates(problem, 1 << 20).engines.size(), 1U);
  problem.fusion = {};
  problem.stride = 2, problem.out_h = 3, problem.out_w = 2;
  EXPECT_EQ(both.candidates(problem, 1 << 20).engines.size(), 1U);
}

// In all three directions the matrix product equals the convolution.
TEST(ProductsBesideConvolutions, ComputeWhatTheConvolutionDoes) {
  const ConvEngine both = with_other_candidates(make_conv_engine({}), make_gemm_engine(), 1);
  constexpr std::size_t kRows = 3 * 5 * 4, kIn = 8, kOut = 16;
  for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_data, ConvPass::backward_weights}) {
    const ConvProblem problem{
        .pass = pass, .n = 3, .h = 5, .w = 4, .c = kIn, .out_h = 5, .out_w = 4, .out_c = kOut};
    // In the order of Instruction::uses().
    std::array<std::size_t, 3> sizes{kRows * kIn, kOut * kIn, kRows * kOut};
    if (pass == ConvPass::backward_data) sizes = {kRows * kOut, kOut * kIn, kRows * kIn};
    if (pass == ConvPass::backward_weights) sizes = {kRows * kIn, kRows * kOut, kOut * kIn};
    std::array<std::vector<float>, 2> results;
    for (std::size_t engine = 0; engine < 2; ++engine) {
      std::array<std::vector<float>, 3> operands;
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < sizes[i]; ++j)
          operands[i].push_back(std::sin(0.7F * static_cast<float>(j + 100 * i)));
      std::vector<std::byte*> addresses;
      for (auto& one : operands) addresses.push_back(reinterpret_cast<std::byte*>(one.data()));
      const ConvPlan plan = both.candidates(problem, 1 << 20).build(engine).value();
      std::vector<std::byte> workspace(plan.workspace_bytes + 1);
      plan.run(nullptr, addresses, workspace.data());
      results[engine] = operands[2];
    }
    for (std::size_t i = 0; i < results[0].size(); ++i)
      ASSERT_NEAR(results[0][i], results[1][i], 1e-4) << text_of(problem) << " " << i;
  }
}

// Gradients that overflow where the mask is 0 leave no trace.
TEST(BlockEnd, MasksInfinities) {
  const BlockEndShape shape{.pixels = 2, .channels = 128, .outputs = 64};
  const std::uint16_t kLarge = 0x7B53;  // 60,000 in fp16
  std::vector<std::uint16_t> d_out(128, kLarge), weight(64 * 128, kLarge), added(256), d_in(256, kLarge);
  std::vector<std::uint8_t> mask(32);
  const auto bytes_of_tensor = [](auto& tensor) { return reinterpret_cast<std::byte*>(tensor.data()); };
  launch_block_end(DType::f16, shape,
                   {.left = bytes_of_tensor(d_out),
                    .weight = bytes_of_tensor(weight),
                    .added = bytes_of_tensor(added),
                    .mask = bytes_of_tensor(mask),
                    .out = bytes_of_tensor(d_in)},
                   {}, {}, nullptr);
  EXPECT_EQ(d_in, added) << "all zeros";
}

}  // namespace
}  // namespace plumb::cuda
