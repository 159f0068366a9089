// Pooling kernels on the emulated GPU against loops in double.
#include "kernels/cuda/pool.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "tests/cuda_host/guarded_tensor.h"

namespace plumb::cuda {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

PoolShape shape_of(std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t c, int kernel, int stride,
                   int padding) {
  return {.n = n,
          .h = h,
          .w = w,
          .c = c,
          .out_h = (h + 2 * padding - kernel) / stride + 1,
          .out_w = (w + 2 * padding - kernel) / stride + 1,
          .kernel = kernel,
          .stride = stride,
          .padding = padding};
}

// Extents that no vector and no block divides, and windows that padding cuts on every side.
const PoolShape kShapes[] = {
    shape_of(2, 7, 9, 8, 3, 2, 1),    // the ResNet's window
    shape_of(1, 8, 8, 64, 3, 2, 1),   // … at its channels
    shape_of(2, 6, 4, 16, 2, 2, 0),   // windows that don't overlap
    shape_of(1, 6, 7, 24, 3, 1, 1),   // 9 windows over a pixel
    shape_of(1, 11, 10, 8, 5, 3, 2),  // a wide one
    shape_of(1, 9, 9, 8, 2, 3, 0),    // pixels that no window covers
    shape_of(2, 1, 1, 8, 3, 2, 1),    // all but one place are padding
    shape_of(1, 20, 20, 8, 16, 4, 8),
};

std::size_t elements_in(const PoolShape& s) {
  return static_cast<std::size_t>(s.n * s.h * s.w * s.c);
}
std::size_t elements_out(const PoolShape& s) {
  return static_cast<std::size_t>(s.n * s.out_h * s.out_w * s.c);
}

// For every output the input element that wins: the first of the largest, row by row.
std::vector<std::size_t> winners(const PoolShape& s, const std::vector<double>& in) {
  std::vector<std::size_t> winners;
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t oy = 0; oy < s.out_h; ++oy)
      for (std::int64_t ox = 0; ox < s.out_w; ++ox)
        for (std::int64_t c = 0; c < s.c; ++c) {
          std::size_t best = in.size();
          for (std::int64_t y = oy * s.stride - s.padding; y < oy * s.stride - s.padding + s.kernel; ++y)
            for (std::int64_t x = ox * s.stride - s.padding; x < ox * s.stride - s.padding + s.kernel; ++x) {
              if (y < 0 || y >= s.h || x < 0 || x >= s.w) continue;
              const auto at = static_cast<std::size_t>(((n * s.h + y) * s.w + x) * s.c + c);
              if (best == in.size() || in[at] > in[best]) best = at;
            }
          winners.push_back(best);
        }
  return winners;
}

// Few different values, so that many windows hold equals, and all negative, as padding isn't.
std::vector<double> values_with_equals(std::size_t count) {
  std::vector<double> values = normal_values(DType::f32, count, 1);
  for (double& value : values) value = std::round(2 * value) - 20;
  return values;
}

// [n, pixels, c] to the layout's order, and back.
std::vector<double> held(const PoolShape& s, std::int64_t pixels, const std::vector<double>& values,
                         bool back) {
  if (s.layout == TensorLayout::nhwc) return values;
  const auto image = static_cast<std::size_t>(pixels), c = static_cast<std::size_t>(s.c);
  return back ? transposed(values, c, image) : transposed(values, image, c);
}
std::vector<double> held_in(const PoolShape& s, const std::vector<double>& values, bool back = false) {
  return held(s, s.h * s.w, values, back);
}
std::vector<double> held_out(const PoolShape& s, const std::vector<double>& values, bool back = false) {
  return held(s, s.out_h * s.out_w, values, back);
}

struct PoolCase {
  DType dtype;
  PoolShape shape;
};
// Every shape in every type, and in f32 in NCHW, there also with any number of channels.
std::vector<PoolCase> pool_cases(std::span<const PoolShape> shapes) {
  std::vector<PoolCase> cases;
  for (PoolShape shape : shapes) {
    for (DType dtype : kStorageTypes) cases.push_back({dtype, shape});
    shape.layout = TensorLayout::nchw;
    cases.push_back({DType::f32, shape});
    shape.c -= 3;
    cases.push_back({DType::f32, shape});
  }
  return cases;
}
std::string text_of(const PoolCase& one) {
  const PoolShape& s = one.shape;
  return fmt::format("{} {} {}x{}x{} kernel {}", name_of(one.dtype), name_of(s.layout), s.h, s.w, s.c,
                     s.kernel);
}

struct PoolRun {
  std::vector<double> out, d_in, argmax, winners;
};

PoolRun run_max_pool(DType dtype, const PoolShape& shape, const std::vector<double>& in,
                     const std::vector<double>& d_out, const std::vector<double>& factors = {},
                     bool keeps_winners = false) {
  GuardedTensor given(DType::f32, factors.empty() ? std::vector<double>{0} : factors);
  GuardedTensor input(dtype, held_in(shape, in)), out(dtype, elements_out(shape)),
      argmax(DType::u8, elements_out(shape)), winners(dtype, elements_out(shape)),
      d_output(dtype, held_out(shape, d_out)), d_in(dtype, elements_in(shape));
  launch_max_pool_forward(dtype, shape, input.data(), factors.empty() ? nullptr : given.as<float>(),
                          out.data(), argmax.as<std::uint8_t>(), keeps_winners ? winners.data() : nullptr,
                          nullptr);
  launch_max_pool_backward(dtype, shape, d_output.data(), nullptr, argmax.as<std::uint8_t>(), d_in.data(),
                           nullptr);
  return {.out = held_out(shape, out.values(), true),
          .d_in = held_in(shape, d_in.values(), true),
          .argmax = held_out(shape, argmax.values(), true),
          .winners = held_out(shape, winners.values(), true)};
}

TEST(MaxPool, TakesTheLargestAndSendsItsGradientBack) {
  for (const PoolCase& one : pool_cases(kShapes)) {
    const auto& [dtype, shape] = one;
    SCOPED_TRACE(text_of(one));
    const std::vector<double> in = values_with_equals(elements_in(shape));
    const std::vector<double> d_out = normal_values(dtype, elements_out(shape), 2);
    const PoolRun run = run_max_pool(dtype, shape, in, d_out);
    std::vector<double> wanted_out, wanted_d_in(in.size(), 0.0);
    const std::vector<std::size_t> from = winners(shape, in);
    for (std::size_t i = 0; i < from.size(); ++i) {
      wanted_out.push_back(in[from[i]]);
      wanted_d_in[from[i]] += d_out[i];
    }
    EXPECT_EQ(run.out, wanted_out);
    expect_close(run.d_in, wanted_d_in, dtype, 2, dtype == DType::f32 ? 8 : 0);  // up to 16 are summed
  }
}

// Factors of both signs and small numbers, so that nothing is rounded: many elements are 0 behind the ReLU.
TEST(MaxPool, NormalisesAndActivatesWhatItReads) {
  for (const PoolCase& one : pool_cases(kShapes)) {
    const auto& [dtype, shape] = one;
    SCOPED_TRACE(text_of(one));
    const auto channels = static_cast<std::size_t>(shape.c);
    std::vector<double> in = values_with_equals(elements_in(shape)), activated, factors, wanted;
    for (std::size_t c = 0; c < channels; ++c) factors.push_back(c % 2 == 0 ? 2 : -1);
    for (std::size_t c = 0; c < channels; ++c) factors.push_back(c % 2 == 0 ? 40 : -20);
    for (std::size_t i = 0; i < in.size(); ++i)
      activated.push_back(std::max(factors[i % channels] * in[i] + factors[channels + i % channels], 0.0));
    const std::vector<double> d_out = normal_values(dtype, elements_out(shape), 2);
    const PoolRun normalised = run_max_pool(dtype, shape, in, d_out, factors);
    const PoolRun with_winners = run_max_pool(dtype, shape, in, d_out, factors, true);
    const PoolRun stored = run_max_pool(dtype, shape, activated, d_out);
    const std::vector<std::size_t> from = winners(shape, activated);
    for (std::size_t element : from) wanted.push_back(activated[element]);
    EXPECT_EQ(normalised.out, wanted);
    EXPECT_EQ(with_winners.out, wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] > 0) {
        EXPECT_EQ(normalised.argmax[i], stored.argmax[i]);
        EXPECT_EQ(with_winners.argmax[i], stored.argmax[i]);
        EXPECT_EQ(with_winners.winners[i], in[from[i]]);
      } else {
        EXPECT_EQ(with_winners.argmax[i], kNoWinner);
        const std::size_t c = i % channels;
        EXPECT_LE(factors[c] * with_winners.winners[i] + factors[channels + c], 0);
      }
    }
  }
}

TEST(MaxPool, SendsTheSumOfTwoGradientsBack) {
  for (const PoolShape& shape : kShapes) {
    const std::vector<double> in = values_with_equals(elements_in(shape));
    const std::vector<double> first = normal_values(DType::f16, elements_out(shape), 2),
                              second = normal_values(DType::f16, elements_out(shape), 3);
    GuardedTensor input(DType::f16, in), out(DType::f16, elements_out(shape)),
        argmax(DType::u8, elements_out(shape)), d_out(DType::f16, first), more(DType::f16, second),
        d_in(DType::f16, elements_in(shape));
    launch_max_pool_forward(DType::f16, shape, input.data(), nullptr, out.data(), argmax.as<std::uint8_t>(),
                            nullptr, nullptr);
    launch_max_pool_backward(DType::f16, shape, d_out.data(), more.data(), argmax.as<std::uint8_t>(),
                             d_in.data(), nullptr);
    std::vector<double> wanted(in.size(), 0.0);
    const std::vector<std::size_t> from = winners(shape, in);
    for (std::size_t i = 0; i < from.size(); ++i) wanted[from[i]] += first[i] + second[i];
    expect_close(d_in.values(), wanted, DType::f16, 2);
  }
}

TEST(MaxPool, KeepsMinusInfinityAndItsGradient) {
  const PoolShape shape = shape_of(1, 3, 3, 8, 3, 2, 1);
  for (DType dtype : kStorageTypes) {
    const PoolRun run = run_max_pool(dtype, shape, std::vector<double>(elements_in(shape), -kInfinity),
                                     std::vector<double>(elements_out(shape), 1));
    EXPECT_EQ(run.out, std::vector<double>(elements_out(shape), -kInfinity));
    double sum = 0;
    for (double value : run.d_in) sum += value;
    EXPECT_EQ(sum, static_cast<double>(elements_out(shape))) << "a window sent its gradient to the padding";
  }
}

TEST(MaxPool, LetsNoNaNGetLost) {
  const PoolShape shape = shape_of(1, 4, 4, 8, 2, 2, 0);
  for (std::size_t place : {0, 1, 4, 5}) {  // of the first window, in pixels
    std::vector<double> in = normal_values(DType::f16, elements_in(shape), 3);
    in[place * 8 + 3] = kNaN;
    const PoolRun run = run_max_pool(DType::f16, shape, in, std::vector<double>(elements_out(shape), 1));
    EXPECT_TRUE(std::isnan(run.out[3])) << place;
    EXPECT_EQ(run.d_in[place * 8 + 3], 1);
    EXPECT_EQ(std::count_if(run.out.begin(), run.out.end(), [](double v) { return std::isnan(v); }), 1);
  }
}

TEST(MaxPool, RepeatsBitForBitInAnyOrderOfThreads) {
  const PoolShape shape = kShapes[3];
  const std::vector<double> in = values_with_equals(elements_in(shape));
  const std::vector<double> d_out = normal_values(DType::f16, elements_out(shape), 2);
  const PoolRun first = run_max_pool(DType::f16, shape, in, d_out);
  for (int i = 0; i < 3; ++i) {  // each launch draws another order
    const PoolRun again = run_max_pool(DType::f16, shape, in, d_out);
    EXPECT_EQ(again.d_in, first.d_in);
    EXPECT_EQ(again.argmax, first.argmax);
  }
}

TEST(GlobalAverage, AveragesPixelsAndSpreadsTheGradient) {
  const PoolShape shapes[] = {{.n = 2, .h = 7, .w = 7, .c = 2048},
                              {.n = 1, .h = 1, .w = 1, .c = 8},
                              {.n = 2, .h = 3, .w = 3, .c = 24},
                              {.n = 1, .h = 5, .w = 10, .c = 8}};
  for (const auto& [dtype, shape] : pool_cases(shapes)) {
    SCOPED_TRACE(text_of({dtype, shape}));
    const auto n = static_cast<std::size_t>(shape.n), pixels = static_cast<std::size_t>(shape.h * shape.w),
               c = static_cast<std::size_t>(shape.c);
    const std::vector<double> values = normal_values(dtype, n * pixels * c, 4);
    const std::vector<double> d_values = normal_values(dtype, n * c, 5);
    GuardedTensor in(dtype, held_in(shape, values)), out(dtype, n * c), d_out(dtype, d_values),
        d_in(dtype, n * pixels * c);
    launch_average_forward(dtype, shape, in.data(), out.data(), nullptr);
    launch_average_backward(dtype, shape, d_out.data(), d_in.data(), nullptr);
    std::vector<double> means(n * c, 0.0), spread(n * pixels * c);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t to = i / (pixels * c) * c + i % c;
      means[to] += values[i] / static_cast<double>(pixels);
      spread[i] = d_values[to] / static_cast<double>(pixels);
    }
    expect_close(out.values(), means, dtype, 4);
    expect_close(held_in(shape, d_in.values(), true), spread, dtype, 3, 0.1);
  }
}

}  // namespace
}  // namespace plumb::cuda
