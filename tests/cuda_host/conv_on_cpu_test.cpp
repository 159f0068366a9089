// The emulated GPU's convolutions and fused epilogues against loops in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/cuda/conv.h"
#include "tests/cuda_host/host_numbers.h"

namespace plumb::cuda {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

constexpr std::int64_t kN = 2, kH = 5, kW = 4, kC = 8, kOutC = 16, kGroups = 2;

ConvProblem problem_of(ConvPass pass, int groups = 1) {
  return {.pass = pass,
          .n = kN,
          .h = kH,
          .w = kW,
          .c = kC,
          .out_h = 3,
          .out_w = 2,
          .out_c = kOutC,
          .kernel = 3,
          .stride = 2,
          .padding = 1,
          .groups = groups};
}

Floats random_floats(std::int64_t count, unsigned seed) {
  std::mt19937 bits(seed);
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(bits() % 2001) / 1000 - 1;
  return values;
}

// Calls product(input, weight, output) with the indices of every multiplication.
template <typename Product>
void for_each_product(const ConvProblem& p, Product&& product) {
  const std::int64_t in_group = p.c / p.groups, out_group = p.out_c / p.groups;
  for (std::int64_t n = 0; n < p.n; ++n)
    for (std::int64_t y = 0; y < p.out_h; ++y)
      for (std::int64_t x = 0; x < p.out_w; ++x)
        for (std::int64_t o = 0; o < p.out_c; ++o)
          for (std::int64_t ky = 0; ky < p.kernel; ++ky)
            for (std::int64_t kx = 0; kx < p.kernel; ++kx) {
              const std::int64_t row = y * p.stride + ky - p.padding, column = x * p.stride + kx - p.padding;
              if (row < 0 || row >= p.h || column < 0 || column >= p.w) continue;
              for (std::int64_t c = 0; c < in_group; ++c)
                product(((n * p.h + row) * p.w + column) * p.c + o / out_group * in_group + c,
                        ((o * p.kernel + ky) * p.kernel + kx) * in_group + c,
                        ((n * p.out_h + y) * p.out_w + x) * p.out_c + o);
            }
}

std::size_t inputs() {
  return kN * kH * kW * kC;
}
std::size_t outputs() {
  return kN * 3 * 2 * kOutC;
}
std::size_t weights(int groups = 1) {
  return static_cast<std::size_t>(kOutC * 9 * kC / groups);
}

void run(const ConvProblem& problem, std::vector<Floats*> operands) {
  const auto engine = make_conv_engine({});
  const auto plan = engine->plan(problem, 1 << 20);
  std::vector<std::byte*> addresses;
  for (Floats* one : operands) addresses.push_back(reinterpret_cast<std::byte*>(one->data()));
  std::vector<std::byte> workspace(plan->workspace_bytes());
  plan->run(nullptr, addresses, workspace.data());
}

void expect_near(const Floats& actual, const Doubles& truth) {
  ASSERT_EQ(actual.size(), truth.size());
  for (std::size_t i = 0; i < truth.size(); ++i)
    EXPECT_NEAR(actual[i], truth[i], 1e-4 + 1e-5 * std::abs(truth[i])) << i;
}

TEST(ConvOnCpu, AllThreeDirectionsWithAndWithoutGroups) {
  for (int groups : {1, static_cast<int>(kGroups)}) {
    Floats in = random_floats(kN * kH * kW * kC, 1), weight = random_floats(kOutC * 9 * kC / groups, 2),
           d_out = random_floats(kN * 3 * 2 * kOutC, 3), out(outputs()), d_in(inputs()),
           d_weight(weights(groups));
    Doubles true_out(outputs()), true_d_in(inputs()), true_d_weight(weights(groups));
    for_each_product(problem_of(ConvPass::forward, groups), [&](auto i, auto w, auto o) {
      true_out[o] += static_cast<double>(in[i]) * weight[w];
      true_d_in[i] += static_cast<double>(d_out[o]) * weight[w];
      true_d_weight[w] += static_cast<double>(d_out[o]) * in[i];
    });
    run(problem_of(ConvPass::forward, groups), {&in, &weight, &out});
    expect_near(out, true_out);
    run(problem_of(ConvPass::backward_data, groups), {&d_out, &weight, &d_in});
    expect_near(d_in, true_d_in);
    run(problem_of(ConvPass::backward_weights, groups), {&in, &d_out, &d_weight});
    expect_near(d_weight, true_d_weight);
  }
}

TEST(ConvOnCpu, NormalisesAndGathersStatistics) {
  ConvProblem problem = problem_of(ConvPass::forward);
  problem.fusion = {.normalizes_input = true, .gathers_statistics = true};
  Floats in = random_floats(kN * kH * kW * kC, 1), weight = random_floats(kOutC * 9 * kC, 2),
         factors = random_floats(2 * kC, 3), out(outputs()), sums(2 * kOutC);
  Doubles true_out(outputs()), true_activated(inputs()), true_sums(2 * kOutC);
  for (std::size_t i = 0; i < in.size(); ++i)
    true_activated[i] = std::max(0.0, static_cast<double>(factors[i % kC]) * in[i] + factors[kC + i % kC]);
  for_each_product(problem, [&](auto i, auto w, auto o) { true_out[o] += true_activated[i] * weight[w]; });
  for (std::size_t o = 0; o < true_out.size(); ++o) {
    true_sums[o % kOutC] += true_out[o];
    true_sums[kOutC + o % kOutC] += true_out[o] * true_out[o];
  }
  run(problem, {&in, &weight, &out, &factors, &sums});
  expect_near(out, true_out);
  expect_near(sums, true_sums);
}

// Coefficients and gradients combine to batch norm's backward as in the paper.
TEST(ConvOnCpu, GoesBackThroughTheNormInFront) {
  const ConvProblem problem = problem_of(ConvPass::norm_backward_data);
  Floats d_out = random_floats(kN * 3 * 2 * kOutC, 1), weight = random_floats(kOutC * 9 * kC, 2),
         x = random_floats(kN * kH * kW * kC, 3), bias = random_floats(kC, 4), scale = random_floats(kC, 5),
         mean(kC), inverse(kC), d_activated(inputs()), d_scale(kC), d_bias(kC), coefficients(3 * kC);
  const double pixels = kN * kH * kW;
  for (std::size_t c = 0; c < kC; ++c) {
    double sum = 0, squares = 0;
    for (std::size_t i = c; i < x.size(); i += kC) sum += x[i];
    for (std::size_t i = c; i < x.size(); i += kC) squares += std::pow(x[i] - sum / pixels, 2);
    mean[c] = static_cast<float>(sum / pixels);
    inverse[c] = static_cast<float>(1 / std::sqrt(squares / pixels + 1e-5));
  }
  const auto standard = [&](std::size_t i) {
    return (static_cast<double>(x[i]) - mean[i % kC]) * inverse[i % kC];
  };
  Doubles d(inputs()), sum_d(kC), sum_dx(kC), d_in(inputs());
  for_each_product(problem,
                   [&](auto i, auto w, auto o) { d[i] += static_cast<double>(d_out[o]) * weight[w]; });
  for (std::size_t i = 0; i < d.size(); ++i) {
    if (scale[i % kC] * standard(i) + bias[i % kC] <= 0) d[i] = 0;
    sum_d[i % kC] += d[i];
    sum_dx[i % kC] += d[i] * standard(i);
  }
  for (std::size_t i = 0; i < d.size(); ++i)
    d_in[i] = scale[i % kC] * inverse[i % kC] *
              (d[i] - sum_d[i % kC] / pixels - standard(i) * sum_dx[i % kC] / pixels);

  run(problem,
      {&d_out, &weight, &x, &bias, &mean, &inverse, &scale, &d_activated, &d_scale, &d_bias, &coefficients});
  expect_near(d_activated, d);
  expect_near(d_scale, sum_dx);
  expect_near(d_bias, sum_d);
  Floats applied(inputs());
  for (std::size_t i = 0; i < d.size(); ++i)
    applied[i] = coefficients[i % kC] * d_activated[i] + coefficients[kC + i % kC] * x[i] +
                 coefficients[2 * kC + i % kC];
  expect_near(applied, d_in);
}

TEST(HostNumbers, HalvesAreRoundedToNearestEven) {
  Floats values{1.00048828125F, 1.00146484375F,
                -65519.0F};  // ties: down, up; overflow: below the last f16 step
  round_floats(values, DType::f16);
  EXPECT_EQ(values, (Floats{1.0F, 1.001953125F, -65504.0F}));
  values = {1.00390625F, 1.01171875F};
  round_floats(values, DType::bf16);
  EXPECT_EQ(values, (Floats{1.0F, 1.015625F}));
}

}  // namespace
}  // namespace plumb::cuda
