// Sums, casts, column sums and batches on the emulated GPU against loops in double.
#include "kernels/cuda/elementwise.h"

#include <gtest/gtest.h>

#include <numeric>
#include <span>

#include "bench/data/batch_source.h"
#include "kernels/cuda/synthetic.h"
#include "tests/cuda_host/guarded_tensor.h"

namespace plumb::cuda {
namespace {

// Less than a vector, one, slightly more than one, more than a block.
constexpr std::size_t kCounts[] = {1, 7, 8, 9, 2048, 2048 * 2 + 3};

TEST(Accumulate, AddsInF32AndRoundsOnce) {
  for (DType dtype : kStorageTypes) {
    for (std::size_t count : kCounts) {
      const std::vector<double> a = normal_values(dtype, count, 1), b = normal_values(dtype, count, 2);
      GuardedTensor into(dtype, a), from(dtype, b);
      launch_accumulate(dtype, into.data(), from.data(), static_cast<std::int64_t>(count), nullptr);
      std::vector<double> sums(count);
      for (std::size_t i = 0; i < count; ++i) sums[i] = rounded(dtype, rounded(DType::f32, a[i] + b[i]));
      EXPECT_EQ(into.values(), sums) << name_of(dtype) << " " << count;
      EXPECT_EQ(from.values(), b);
    }
  }
}

TEST(Cast, RoundsToNearestBetweenAnyTwoTypes) {
  for (DType from_dtype : kStorageTypes) {
    for (DType into_dtype : kStorageTypes) {
      for (std::size_t count : kCounts) {
        for (const float scale : {1.0F, 0.25F, 3.0F}) {
          std::vector<double> values = normal_values(from_dtype, count, 3);
          GuardedTensor from(from_dtype, values), into(into_dtype, count);
          launch_cast(from_dtype, from.data(), into_dtype, into.data(), static_cast<std::int64_t>(count),
                      scale, nullptr);
          for (double& value : values) value = rounded(into_dtype, rounded(DType::f32, scale * value));
          EXPECT_EQ(into.values(), values)
              << name_of(from_dtype) << " to " << name_of(into_dtype) << " " << count << " times " << scale;
        }
      }
    }
  }
}

TEST(Cast, KeepsWhatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  GuardedTensor from(DType::f32, {infinity, -infinity, std::nan(""), 1e6}), into(DType::f16, 4);
  launch_cast(DType::f32, from.data(), DType::f16, into.data(), 4, 1, nullptr);
  const std::vector<double> values = into.values();
  EXPECT_EQ(values[0], infinity);
  EXPECT_EQ(values[1], -infinity);
  EXPECT_TRUE(std::isnan(values[2]));
  EXPECT_EQ(values[3], infinity) << "beyond what f16 holds";
}

std::vector<double> column_sums(DType dtype, std::size_t rows, std::size_t columns,
                                const std::vector<double>& values) {
  GuardedTensor matrix(dtype, values), sums(DType::f32, columns);
  launch_column_sums(dtype, matrix.data(), sums.as<float>(), static_cast<std::int64_t>(rows),
                     static_cast<std::int64_t>(columns), nullptr);
  return sums.values();
}

TEST(ColumnSums, AreThoseOfEveryColumn) {
  for (DType dtype : kStorageTypes) {
    for (std::size_t rows : {1, 3, 16, 100}) {
      for (std::size_t columns : {1, 32, 45, 1000}) {
        const std::vector<double> values = normal_values(dtype, rows * columns, 4);
        std::vector<double> wanted(columns, 0.0);
        for (std::size_t i = 0; i < values.size(); ++i) wanted[i % columns] += values[i];
        expect_close(column_sums(dtype, rows, columns, values), wanted, DType::f32, 20, 4);
      }
    }
  }
}

TEST(ColumnSums, RepeatBitForBitInAnyOrderOfThreads) {
  const std::vector<double> values = normal_values(DType::bf16, 75 * 40, 5);
  const std::vector<double> first = column_sums(DType::bf16, 75, 40, values);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(column_sums(DType::bf16, 75, 40, values), first);
}

// [n, c, h, w] to [n, h, w, padded], zero-padded.
std::vector<double> padded_nhwc(const Shape& shape, int padded_channels, const double* nchw) {
  std::vector<double> result;
  for (std::int64_t n = 0; n < shape.n; ++n)
    for (std::int64_t pixel = 0; pixel < shape.h * shape.w; ++pixel)
      for (std::int64_t c = 0; c < padded_channels; ++c)
        result.push_back(c < shape.c ? nchw[(n * shape.c + c) * shape.h * shape.w + pixel] : 0);
  return result;
}

int padded_channels(DType dtype) {
  return static_cast<int>(16 / bytes_of(dtype));
}

// Powers of 2, so that no rounding hides a wrong channel.
constexpr Normalisation kExact{{0.5F, 0.25F, 2}, {-1, 3, 0.5F}};

// [n, h, w, 3] bytes to [n, h, w, padded], normalised by kExact and zero-padded.
std::vector<double> packed(int padded, std::span<const std::uint8_t> pixels) {
  std::vector<double> result;
  for (std::size_t i = 0; i < pixels.size(); i += 3)
    for (std::size_t c = 0; c < static_cast<std::size_t>(padded); ++c)
      result.push_back(c < 3 ? pixels[i + c] * kExact.factor[c] + kExact.offset[c] : 0);
  return result;
}

TEST(PackBatch, NormalisesTheHalfOfTheIterationsParity) {
  for (const Shape& shape : {Shape{.n = 3, .h = 5, .w = 7, .c = 3}, {.n = 2, .h = 17, .w = 31, .c = 3}}) {
    const auto elements = static_cast<std::size_t>(shape.elements());
    const auto images_in_batch = static_cast<std::size_t>(shape.n);
    std::vector<std::uint8_t> staged(2 * elements);
    for (std::size_t i = 0; i < staged.size(); ++i) staged[i] = static_cast<std::uint8_t>(i * 37 + i / 256);
    std::vector<std::int32_t> labels_staged(2 * images_in_batch);
    std::iota(labels_staged.begin(), labels_staged.end(), 10);
    for (DType dtype : kStorageTypes) {
      for (std::uint64_t iteration : {0, 1, 4, 1025}) {
        const int channels = padded_channels(dtype);
        GuardedTensor images(dtype, elements / 3 * static_cast<std::size_t>(channels)),
            labels(DType::i32, images_in_batch);
        const State state{.step = {.iteration = iteration}};
        launch_pack_batch(
            {.pixels = staged.data(), .labels = labels_staged.data()}, kExact, &state,
            {.images = images.data(), .labels = labels.as<std::int32_t>(), .shape = shape, .dtype = dtype},
            nullptr);
        const std::size_t half = iteration % 2;
        EXPECT_EQ(images.values(),
                  rounded(dtype, packed(channels, std::span(staged).subspan(half * elements, elements))))
            << name_of(dtype);
        const auto first = labels_staged.begin() + static_cast<std::ptrdiff_t>(half * images_in_batch);
        EXPECT_EQ(labels.values(), std::vector<double>(first, first + shape.n));
        if (dtype != DType::f32) continue;
        GuardedTensor planes(dtype, elements);
        launch_pack_batch({.pixels = staged.data(), .labels = labels_staged.data()}, kExact, &state,
                          {.images = planes.data(),
                           .labels = labels.as<std::int32_t>(),
                           .shape = shape,
                           .layout = TensorLayout::nchw},
                          nullptr);
        EXPECT_EQ(planes.values(), transposed(packed(3, std::span(staged).subspan(half * elements, elements)),
                                              static_cast<std::size_t>(shape.h * shape.w), 3));
      }
    }
  }
}

TEST(SyntheticBatch, IsTheOneThatTheHostMakes) {
  for (const int rank : {0, 3}) {
    FixedBatch source =
        synthetic_batch({.batch_per_device = 5, .image_size = 19, .classes = 1000, .seed = 42, .rank = rank});
    const Batch batch = source.batch();
    const Shape shape{.n = 5, .h = 19, .w = 19, .c = 3};
    const std::vector<double> host(batch.images.begin(), batch.images.end());
    for (DType dtype : kStorageTypes) {
      const int channels = padded_channels(dtype);
      GuardedTensor images(dtype, host.size() / 3 * static_cast<std::size_t>(channels)),
          labels(DType::i32, 5);
      launch_synthetic_batch(
          synthetic_keys(42, rank), 1000,
          {.images = images.data(), .labels = labels.as<std::int32_t>(), .shape = shape, .dtype = dtype},
          nullptr);
      // In fp32 the kernel rounds the angle by up to 2^-22, which the radius multiplies by up to 6.67.
      expect_close(images.values(), padded_nhwc(shape, channels, host.data()), dtype,
                   dtype == DType::f32 ? 32 : 1.1);
      EXPECT_EQ(labels.values(), std::vector<double>(batch.labels.begin(), batch.labels.end()));
    }
    GuardedTensor planes(DType::f32, host.size()), labels(DType::i32, 5);
    launch_synthetic_batch(synthetic_keys(42, rank), 1000,
                           {.images = planes.data(),
                            .labels = labels.as<std::int32_t>(),
                            .shape = shape,
                            .layout = TensorLayout::nchw},
                           nullptr);
    expect_close(planes.values(), host, DType::f32, 32);
  }
}

}  // namespace
}  // namespace plumb::cuda
