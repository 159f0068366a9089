// A ResNet's first convolution by our own kernels, on the emulated GPU against loops in double.
#include "kernels/cuda/stem.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/cuda_host/guarded_tensor.h"

namespace plumb::cuda {
namespace {

using Values = std::vector<double>;

StemShape stem_of(std::int64_t n, std::int64_t h, std::int64_t w) {
  return {.n = n, .h = h, .w = w, .out_h = (h - 1) / 2 + 1, .out_w = (w - 1) / 2 + 1};
}

const StemShape kStemShapes[] = {
    stem_of(2, 32, 32),   // one tile's columns in part
    stem_of(1, 7, 34),    // odd rows: the last tile has one; a warp with one column
    stem_of(1, 5, 260),   // a second tile of columns
    stem_of(3, 2, 2),     // all windows reach over the border
    stem_of(1, 12, 224),  // full tiles
};

std::size_t stem_inputs(const StemShape& s) {
  return static_cast<std::size_t>(s.n * s.h * s.w * kStemChannels);
}
std::size_t stem_outputs(const StemShape& s) {
  return static_cast<std::size_t>(s.n * s.out_h * s.out_w * kStemOutputs);
}

// Images of 3 channels; the fourth is 0.
Values images_of(DType dtype, const StemShape& s) {
  Values images = normal_values(dtype, stem_inputs(s), 1);
  for (std::size_t i = 3; i < images.size(); i += kStemChannels) images[i] = 0;
  return images;
}

// visit(element of the input, first of the output's channels, first of the weights' channel 0) for every
// pixel of every window; weights of channel c lie c * 196 behind.
template <typename Visit>
void for_each_tap(const StemShape& s, const Visit& visit) {
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t y = 0; y < s.out_h; ++y)
      for (std::int64_t x = 0; x < s.out_w; ++x)
        for (std::int64_t tap = 0; tap < kStemKernel * kStemKernel; ++tap) {
          const std::int64_t row = y * kStemStride - kStemPadding + tap / kStemKernel;
          const std::int64_t column = x * kStemStride - kStemPadding + tap % kStemKernel;
          if (row < 0 || row >= s.h || column < 0 || column >= s.w) continue;
          visit(static_cast<std::size_t>(((n * s.h + row) * s.w + column) * kStemChannels),
                static_cast<std::size_t>(((n * s.out_h + y) * s.out_w + x) * kStemOutputs),
                static_cast<std::size_t>(tap * kStemChannels));
        }
}
constexpr std::size_t kPerOutput = kStemKernel * kStemKernel * kStemChannels;

void expect_rounded(const Values& made, const Values& wanted, DType stored, double sums_error) {
  ASSERT_EQ(made.size(), wanted.size());
  const double half_step = stored == DType::f16 ? 0x1p-11 : stored == DType::bf16 ? 0x1p-8 : 0;
  for (std::size_t i = 0; i < made.size(); ++i)
    ASSERT_LE(std::abs(made[i] - wanted[i]), half_step * std::abs(wanted[i]) * 1.01 + sums_error)
        << i << ": " << made[i] << " for " << wanted[i];
}

template <typename Check>
void for_all_stems(const Check& check) {
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const StemShape& shape : kStemShapes) {
      SCOPED_TRACE(testing::Message()
                   << name_of(dtype) << " " << shape.n << "x" << shape.h << "x" << shape.w);
      check(dtype, shape);
    }
}

constexpr int kFewMultiprocessors = 3;  // so that blocks have several tiles

TEST(Stem, ForwardMatchesLoopsInDouble) {
  for_all_stems([](DType dtype, const StemShape& s) {
    const Values images = images_of(dtype, s), weights = normal_values(dtype, kStemWeights, 2);
    Values wanted(stem_outputs(s));
    for_each_tap(s, [&](std::size_t in, std::size_t out, std::size_t tap) {
      for (std::size_t c = 0; c < kStemOutputs; ++c)
        for (std::size_t i = 0; i < 3; ++i)
          wanted[out + c] += images[in + i] * weights[c * kPerOutput + tap + i];
    });
    GuardedTensor in(dtype, images), weight(dtype, weights), out(dtype, stem_outputs(s));
    launch_stem_forward(dtype, s, kFewMultiprocessors, in.data(), weight.data(), out.data(), nullptr, nullptr,
                        nullptr);
    expect_rounded(out.values(), wanted, dtype, 1e-4);
  });
}

TEST(Stem, SumsAreThoseOfWhatIsStored) {
  for_all_stems([](DType dtype, const StemShape& s) {
    GuardedTensor in(dtype, images_of(dtype, s)), weight(dtype, normal_values(dtype, kStemWeights, 2)),
        out(dtype, stem_outputs(s)), sums(DType::f32, 2 * kStemOutputs),
        partials(DType::f32, stem_forward_workspace(s, kFewMultiprocessors) / sizeof(float));
    launch_stem_forward(dtype, s, kFewMultiprocessors, in.data(), weight.data(), out.data(), sums.as<float>(),
                        partials.as<float>(), nullptr);
    Values wanted(2 * kStemOutputs);
    const Values stored = out.values();
    double most = 0;
    for (std::size_t i = 0; i < stored.size(); ++i) {
      wanted[i % kStemOutputs] += stored[i];
      wanted[kStemOutputs + i % kStemOutputs] += stored[i] * stored[i];
    }
    for (const double sum : wanted) most = std::max(most, std::abs(sum));
    expect_rounded(sums.values(), wanted, DType::f32, 1e-6 * most);
  });
}

TEST(Stem, WeightsGradientMatchesLoopsInDouble) {
  for_all_stems([](DType dtype, const StemShape& s) {
    const Values images = images_of(dtype, s), gradients = normal_values(dtype, stem_outputs(s), 3);
    Values wanted(kStemWeights);
    double most = 0;
    for_each_tap(s, [&](std::size_t in, std::size_t out, std::size_t tap) {
      for (std::size_t c = 0; c < kStemOutputs; ++c)
        for (std::size_t i = 0; i < 3; ++i)
          wanted[c * kPerOutput + tap + i] += images[in + i] * gradients[out + c];
    });
    for (const double sum : wanted) most = std::max(most, std::abs(sum));
    GuardedTensor in(dtype, images), d_out(dtype, gradients), d_weight(dtype, kStemWeights),
        partials(DType::f32, stem_weights_workspace(s, kFewMultiprocessors) / sizeof(float));
    launch_stem_backward_weights(dtype, s, kFewMultiprocessors, in.data(), d_out.data(), partials.as<float>(),
                                 d_weight.data(), nullptr);
    expect_rounded(d_weight.values(), wanted, dtype, 1e-5 * most + 1e-4);
  });
}

}  // namespace
}  // namespace plumb::cuda
