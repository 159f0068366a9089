// Our Winograd loops on their own, with stride 1 and 2, each pass against sums in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>
#include <vector>

#include "kernels/cpu/winograd/loops.h"
#include "tests/kernels/blocked_conv.h"

namespace plumb::cpu {
namespace {

// Runs a pass with 1, 2 and 3 threads: its results, which must be the same.
template <typename Element>
std::vector<float> results_of(std::int64_t count, const std::function<WinogradPlan(int)>& plan_for,
                              const std::function<void(const WinogradPlan&, int, Element*, float*)>& run) {
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    const auto made = aligned<Element>(count);
    const WinogradPlan plan = plan_for(threads);
    const auto workspace = aligned<float>(plan.floats);
    std::fill_n(made.get(), count, from_float<Element>(NAN));  // what was there doesn't matter
    std::fill_n(workspace.get(), plan.floats, NAN);
    run(plan, threads, made.get(), workspace.get());
    std::vector<float> results(static_cast<std::size_t>(count));
    std::transform(made.get(), made.get() + count, results.begin(),
                   [](Element one) { return to_float(one); });
    if (first.empty()) first = results;
    EXPECT_EQ(results, first) << threads << " threads";
  }
  return first;
}

// rounding: of one result as it is stored, relative. The root mean square of errors is at most 2e-6 of the
// results' (docs/explanation/cpu-winograd.md).
void expect_near(const std::vector<float>& results, const std::vector<Sum>& sums, double rounding) {
  double errors = 0, squares = 0;
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (sums[i].sizes > 0) {
      const double error = results[i] - sums[i].value;
      errors += error * error;
      squares += sums[i].value * sums[i].value;
      ASSERT_LE(std::abs(error), 1e-5 * sums[i].sizes + rounding * std::abs(sums[i].value))
          << "element " << i;
    }
  EXPECT_LE(std::sqrt(errors / squares), 4e-6 + rounding);
}

class WinogradLoops : public testing::TestWithParam<std::tuple<int, ConvShape>> {
 protected:
  void SetUp() override {
    if (lanes == 16 && !__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "this CPU has no AVX-512";
    if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this CPU has no AVX2";
  }
  template <typename Element>
  void expect_passes_match_sums(double rounding) const {
    const auto in = random_values<Element>(in_elements(s), 1);
    const auto weight = random_values<Element>(weight_elements(s), 2);
    const auto d_out = random_values<Element>(out_elements(s), 3);
    std::vector<Sum> out(static_cast<std::size_t>(out_elements(s))),
        d_in(static_cast<std::size_t>(in_elements(s))),
        d_weight(static_cast<std::size_t>(weight_elements(s)));
    // A third of the channels on either side, which have all places in a block.
    for (std::int64_t o = 0; o < s.out_channels; ++o)
      for (std::int64_t i = 0; i < s.in_channels; ++i) {
        const bool of_out = o % 3 == 1, of_in = i % 3 == 1;
        for (std::int64_t tap = 0; tap < 9 && (of_out || of_in); ++tap)
          for_each_product(s, lanes, o, i, tap / 3, tap % 3, [&](const ConvProduct& at) {
            const float x = to_float(in[at.in]), w = to_float(weight[at.weight]), d = to_float(d_out[at.out]);
            if (of_out) out[at.out].add(x, w);
            if (of_in) d_in[at.in].add(d, w);
            if (of_out && of_in) d_weight[at.weight].add(x, d);
          });
      }
    const auto plan_of = [&](ConvPass pass) {
      return [this, pass](int threads) { return plan_winograd(s, pass, lanes, threads); };
    };
    expect_near(
        results_of<Element>(out_elements(s), plan_of(ConvPass::forward),
                            [&](const WinogradPlan& plan, int threads, Element* made, float* workspace) {
                              winograd_convolve(plan, threads, in.get(), weight.get(), made, workspace);
                            }),
        out, rounding);
    expect_near(
        results_of<Element>(in_elements(s), plan_of(ConvPass::backward_data),
                            [&](const WinogradPlan& plan, int threads, Element* made, float* workspace) {
                              winograd_convolve(plan, threads, d_out.get(), weight.get(), made, workspace);
                            }),
        d_in, rounding);
    expect_near(results_of<float>(weight_elements(s), plan_of(ConvPass::backward_weights),
                                  [&](const WinogradPlan& plan, int threads, float* made, float* workspace) {
                                    winograd_backward_weights(plan, threads, in.get(), d_out.get(), made,
                                                              workspace);
                                  }),
                d_weight, 0);
  }

  const int lanes = std::get<0>(GetParam());
  const ConvShape& s = std::get<1>(GetParam());
};

TEST_P(WinogradLoops, PassesMatchSumsInDoubleForAnyNumberOfThreads) {
  expect_passes_match_sums<float>(0);
}

TEST_P(WinogradLoops, PassesOverHalvesRoundOnlyWhatTheyStore) {
  expect_passes_match_sums<Bf16>(1.0 / 256);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, WinogradLoops,
    testing::Combine(testing::Values(8, 16),
                     testing::Values(padded_shape(1, 32, 32, 1, 1, 3, 1, 1),    // one tile, most of it edge
                                     padded_shape(2, 32, 96, 7, 9, 3, 1, 1),    // panels for 3 threads
                                     padded_shape(1, 160, 64, 6, 5, 3, 1, 1),   // weights in two parts
                                     padded_shape(1, 512, 128, 7, 7, 3, 1, 1),  // errors grow with channels
                                     padded_shape(3, 64, 32, 26, 25, 3, 1, 1),  // tiles shared out
                                     padded_shape(3, 32, 96, 28, 27, 3, 1, 0),  // a panel is left over
                                     padded_shape(4, 32, 32, 64, 63, 3, 1, 1),  // sums in two parts
                                     padded_shape(240, 32, 32, 6, 5, 3, 1, 1),  // and of short tiles
                                     padded_shape(1, 32, 32, 1, 2, 3, 2, 1),    // stride 2: one short tile
                                     padded_shape(2, 32, 96, 13, 17, 3, 2, 1),
                                     padded_shape(1, 160, 64, 7, 8, 3, 2, 1),
                                     padded_shape(3, 64, 32, 50, 49, 3, 2, 1),
                                     padded_shape(9, 64, 32, 28, 24, 3, 2, 1),
                                     padded_shape(4, 32, 32, 130, 127, 3, 2, 1))),
    [](const auto& tested) {
      return fmt::format("{}Lanes{}", std::get<0>(tested.param), shape_name(std::get<1>(tested.param)));
    });

}  // namespace
}  // namespace plumb::cpu
