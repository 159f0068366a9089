// Backward-weights by VDPBF16PS on its own, against sums in double precision.
#include "kernels/cpu/conv_weights_bf16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/kernels/blocked_conv.h"

namespace plumb::cpu {
namespace {

class SumWeightsBf16 : public testing::TestWithParam<ConvShape> {};

TEST_P(SumWeightsBf16, MatchesSumsInDoubleForAnyNumberOfThreads) {
  if (!__builtin_cpu_supports("avx512bf16")) GTEST_SKIP() << "this CPU has no AVX512_BF16";
  const ConvShape& s = GetParam();
  const auto in = random_values<Bf16>(in_elements(s), 1), d_out = random_values<Bf16>(out_elements(s), 2);
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    const std::int64_t count = weight_elements(s);
    const auto d_weight = aligned<float>(count);
    std::fill_n(d_weight.get(), count, NAN);  // what was there doesn't matter
    const auto workspace =
        aligned<std::byte>(static_cast<std::int64_t>(sum_weights_bf16_workspace(s, threads)));
    sum_weights_bf16(s, threads, in.get(), d_out.get(), d_weight.get(), workspace.get());
    const std::vector<float> sums(d_weight.get(), d_weight.get() + count);
    if (first.empty()) first = sums;
    ASSERT_EQ(sums, first) << threads << " threads";
  }
  for (std::int64_t o = 0; o < s.out_channels; o += 5)
    for (std::int64_t i = o % 3; i < s.in_channels; i += 7) {
      const std::int64_t ky = (o + i) % s.kernel, kx = (o + 2 * i) % s.kernel;
      Sum sum;
      std::size_t weight = 0;
      for_each_product(s, 16, o, i, ky, kx, [&](const ConvProduct& at) {
        sum.add(to_float(in[at.in]), to_float(d_out[at.out]));
        weight = at.weight;
      });
      if (sum.sizes > 0) {
        ASSERT_NEAR(first[weight], sum.value, 1e-5 * sum.sizes) << o << " " << i << " " << ky << " " << kx;
      }
    }
}

ConvShape shape_of(std::int64_t images, std::int64_t in_channels, std::int64_t out_channels,
                   std::int64_t height, std::int64_t width, std::int64_t kernel, std::int64_t stride) {
  return padded_shape(images, in_channels, out_channels, height, width, kernel, stride, kernel / 2);
}

INSTANTIATE_TEST_SUITE_P(Shapes, SumWeightsBf16,
                         testing::Values(shape_of(1, 16, 32, 1, 1, 1, 1),    // one pixel, half a pair
                                         shape_of(3, 48, 96, 7, 7, 1, 1),    // pairs across images, a half
                                         shape_of(2, 32, 64, 30, 29, 1, 1),  // several chunks, odd rows
                                         shape_of(2, 16, 1120, 5, 5, 1, 1),  // many panels of d_out
                                         shape_of(2, 64, 32, 9, 8, 1, 2),    // a last row isn't read
                                         shape_of(2, 32, 64, 21, 23, 3, 1),  // padding, several chunks
                                         shape_of(2, 32, 32, 9, 10, 3, 2),
                                         shape_of(1, 16, 32, 3, 2, 7, 1)),  // a kernel beyond the image
                         [](const auto& tested) { return shape_name(tested.param); });

}  // namespace
}  // namespace plumb::cpu
