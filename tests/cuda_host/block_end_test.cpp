// The gradient of a block's end by our own kernel, on the emulated GPU against loops in double.
#include "kernels/cuda/block_end.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <span>

#include "kernels/cuda/conv.h"
#include "kernels/cuda/dense.h"
#include "tests/cuda_host/guarded_tensor.h"

namespace plumb::cuda {
namespace {

ConvProblem problem_of(DType dtype, const BlockEndShape& shape, int norms = 0) {
  return {.pass = ConvPass::backward_data,
          .n = 1,
          .h = 1,
          .w = shape.pixels,
          .c = shape.channels,
          .out_h = 1,
          .out_w = shape.pixels,
          .out_c = shape.outputs,
          .dtype = dtype,
          .fusion = {.completes_gradient = true, .sums_for_norms = norms}};
}

struct Candidates {
  std::unique_ptr<GemmEngine> products = make_gemm_engine();
  std::unique_ptr<ConvEngine> engine =
      with_block_end_kernels(with_matrix_products(make_conv_engine({}), *products));
};

// A norm that the gradient is summed for.
struct SummedNorm {
  SummedNorm(DType dtype, std::size_t pixels, std::size_t channels, int seed)
      : in(dtype, normal_values(dtype, pixels * channels, seed)),
        mean(DType::f32, normal_values(DType::f32, channels, seed + 1)),
        inv_std(DType::f32, normal_values(DType::f32, channels, seed + 2)),
        scale(DType::f32, normal_values(DType::f32, channels, seed + 3)),
        d_scale(DType::f32, channels),
        d_bias(DType::f32, channels) {}
  GuardedTensor in, mean, inv_std, scale, d_scale, d_bias;
};

// What a norm's backward makes of the gradient of its output, in double. Coefficients: [3, channels].
void expect_sums(const std::vector<double>& gradient, const SummedNorm& norm,
                 std::span<const double> coefficients) {
  const std::vector<double> in = norm.in.values(), mean = norm.mean.values(), inv_std = norm.inv_std.values(),
                            scale = norm.scale.values(), d_scale = norm.d_scale.values(),
                            d_bias = norm.d_bias.values();
  const std::size_t channels = mean.size();
  const auto pixels = static_cast<double>(gradient.size() / channels);
  for (std::size_t c = 0; c < channels; ++c) {
    double sum = 0, product = 0;
    for (std::size_t i = c; i < gradient.size(); i += channels) {
      sum += gradient[i];
      product += gradient[i] * (in[i] - mean[c]) * inv_std[c];
    }
    const double tolerance = 1e-5 * pixels, of_gradient = scale[c] * inv_std[c];
    const double of_in = -of_gradient * inv_std[c] * product / pixels;
    ASSERT_NEAR(d_bias[c], sum, tolerance) << c;
    ASSERT_NEAR(d_scale[c], product, tolerance) << c;
    ASSERT_NEAR(coefficients[c], of_gradient, 1e-5) << c;
    ASSERT_NEAR(coefficients[channels + c], of_in, 1e-4) << c;
    ASSERT_NEAR(coefficients[2 * channels + c], -of_gradient * sum / pixels - of_in * mean[c], 1e-4) << c;
  }
}

void expect_block_end(DType dtype, const BlockEndShape& shape, int norms) {
  SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << shape.pixels << " pixels, " << shape.outputs
                                  << " to " << shape.channels << " channels, " << norms << " norms");
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
      added_held(dtype, added), mask(DType::u8, bits), coefficients(DType::f32, 6 * channels),
      partials(DType::f32, block_end_workspace(shape, 2) / sizeof(float));
  SummedNorm norm(dtype, pixels, channels, 5), shortcut(dtype, pixels, channels, 9);
  std::vector<std::byte*> operands{d_out_held.data(), weight_held.data(), d_in.data(), added_held.data(),
                                   mask.data()};
  const auto append = [&](auto... tensors) { (operands.push_back(tensors->data()), ...); };
  if (norms > 0)
    append(&norm.in, &norm.mean, &norm.inv_std, &norm.scale, &norm.d_scale, &norm.d_bias, &coefficients);
  if (norms > 1)
    append(&shortcut.in, &shortcut.mean, &shortcut.inv_std, &shortcut.scale, &shortcut.d_scale,
           &shortcut.d_bias);
  Candidates both;
  const auto plan = both.engine->plan(problem_of(dtype, shape, norms), 1 << 20);
  ASSERT_EQ(plan->engine(), kOwnKernel);
  EXPECT_EQ(plan->workspace_bytes(), block_end_workspace(shape, norms));
  plan->run(nullptr, operands, partials.data());
  expect_close(d_in.values(), wanted, dtype, 1.01);
  EXPECT_EQ(added_held.values(), added) << "other instructions read it, too";
  const std::vector<double> rows = coefficients.values();
  if (norms > 0) expect_sums(d_in.values(), norm, std::span(rows).first(3 * channels));
  if (norms > 1) expect_sums(d_in.values(), shortcut, std::span(rows).last(3 * channels));
}

TEST(BlockEnd, MatchesLoopsInDouble) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const int norms : {0, 1, 2}) {
      expect_block_end(dtype, {.pixels = 1, .channels = 128, .outputs = 64}, norms);
      expect_block_end(dtype, {.pixels = 128, .channels = 128, .outputs = 64}, norms);
      expect_block_end(dtype, {.pixels = 300, .channels = 256, .outputs = 64}, norms);
      expect_block_end(dtype, {.pixels = 149, .channels = 256, .outputs = 128}, norms);
      expect_block_end(dtype, {.pixels = 70, .channels = 384, .outputs = 320}, norms);  // stages used again
    }
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
  EXPECT_EQ(engines(problem_of(DType::f16, {.pixels = 20, .channels = 256, .outputs = 64}, 1)), 1U);
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
