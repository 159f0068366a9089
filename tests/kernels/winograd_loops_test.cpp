// Winograd's F(4x4, 3x3) by loops of ours on their own, each pass against sums in double precision.
#include "kernels/cpu/winograd_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <vector>

#include "tests/kernels/blocked_conv.h"

namespace plumb::cpu {
namespace {

// Runs a pass with 1, 2 and 3 threads: its results, which must be the same.
std::vector<float> results_of(std::int64_t count, const std::function<std::int64_t(int)>& floats,
                              const std::function<void(int, float*, float*)>& run) {
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    const auto made = aligned<float>(count), workspace = aligned<float>(floats(threads));
    std::fill_n(made.get(), count, NAN);  // what was there doesn't matter
    std::fill_n(workspace.get(), floats(threads), NAN);
    run(threads, made.get(), workspace.get());
    const std::vector<float> results(made.get(), made.get() + count);
    if (first.empty()) first = results;
    EXPECT_EQ(results, first) << threads << " threads";
  }
  return first;
}

void expect_near(const std::vector<float>& results, const std::vector<Sum>& sums) {
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (sums[i].sizes > 0) {
      ASSERT_NEAR(results[i], sums[i].value, 1e-5 * sums[i].sizes) << "element " << i;
    }
}

class WinogradLoops : public testing::TestWithParam<std::tuple<int, ConvShape>> {
 protected:
  void SetUp() override {
    if (lanes == 16 && !__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "this CPU has no AVX-512";
    if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this CPU has no AVX2";
  }
  // visit(ConvProduct) for all products of all elements of the weight.
  template <typename Visit>
  void for_all_products(Visit visit) const {
    for (std::int64_t o = 0; o < s.out_channels; ++o)
      for (std::int64_t i = 0; i < s.in_channels; ++i)
        for (std::int64_t tap = 0; tap < 9; ++tap) for_each_product(s, lanes, o, i, tap / 3, tap % 3, visit);
  }

  const int lanes = std::get<0>(GetParam());
  const ConvShape& s = std::get<1>(GetParam());
  const Aligned<float> in = random_values<float>(in_elements(s), 1);
  const Aligned<float> weight = random_values<float>(weight_elements(s), 2);
  const Aligned<float> d_out = random_values<float>(out_elements(s), 3);
};

TEST_P(WinogradLoops, PassesMatchSumsInDoubleForAnyNumberOfThreads) {
  std::vector<Sum> out(static_cast<std::size_t>(out_elements(s))),
      d_in(static_cast<std::size_t>(in_elements(s))), d_weight(static_cast<std::size_t>(weight_elements(s)));
  for_all_products([&](const ConvProduct& at) {
    out[at.out].add(in[at.in], weight[at.weight]);
    d_in[at.in].add(d_out[at.out], weight[at.weight]);
    d_weight[at.weight].add(in[at.in], d_out[at.out]);
  });
  expect_near(results_of(
                  out_elements(s), [&](int threads) { return plan_winograd(s, lanes, threads).floats; },
                  [&](int threads, float* made, float* workspace) {
                    winograd_forward(s, lanes, threads, in.get(), weight.get(), made, workspace);
                  }),
              out);
  expect_near(results_of(
                  in_elements(s),
                  [&](int threads) { return plan_winograd(backward_data_shape(s), lanes, threads).floats; },
                  [&](int threads, float* made, float* workspace) {
                    winograd_backward_data(s, lanes, threads, d_out.get(), weight.get(), made, workspace);
                  }),
              d_in);
  expect_near(results_of(
                  weight_elements(s), [&](int) { return plan_winograd_weights(s, lanes).floats; },
                  [&](int, float* made, float* workspace) {
                    winograd_backward_weights(s, lanes, in.get(), d_out.get(), made, workspace);
                  }),
              d_weight);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, WinogradLoops,
    testing::Combine(testing::Values(8, 16),
                     testing::Values(padded_shape(1, 32, 32, 1, 1, 3, 1, 1),      // one tile, most of it edge
                                     padded_shape(2, 32, 96, 7, 9, 3, 1, 1),      // panels for 3 threads
                                     padded_shape(1, 160, 64, 6, 5, 3, 1, 1),     // weights in two parts
                                     padded_shape(3, 64, 32, 26, 25, 3, 1, 1),    // tiles shared out
                                     padded_shape(3, 32, 96, 28, 27, 3, 1, 0),    // a panel is left over
                                     padded_shape(4, 32, 32, 64, 63, 3, 1, 1))),  // sums in two parts
    [](const auto& tested) {
      return fmt::format("{}Lanes{}", std::get<0>(tested.param), shape_name(std::get<1>(tested.param)));
    });

}  // namespace
}  // namespace plumb::cpu
