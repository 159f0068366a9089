// The transforms of Winograd's F(4x4, 3x3) for 16 channels at a time, by AVX-512. With the points 0, a, -a,
// b, -b and infinity (Lavin, Gray 2016, arXiv:1509.09308, section 4; a and b by Barabasz et al. 2020,
// arXiv:1803.10986, table 4, for small errors) in one dimension y = A^T ((G g) * (B^T d)), where d are 6
// inputs, g 3 weights, y 4 results. Backward-weights is its transpose: d_g = G^T ((A d_y) * (B^T d)).
#pragma once

#include <immintrin.h>

#include <cstdint>

#define PLUMB_AVX512 __attribute__((target("avx512f")))
#define PLUMB_AVX512_INLINE PLUMB_AVX512 __attribute__((always_inline)) inline

namespace plumb::cpu::winograd {

inline constexpr float kA = 0.625f, kB = 1.5f;
inline constexpr float kA2 = kA * kA, kB2 = kB * kB, kA3 = kA2 * kA, kB3 = kB2 * kB;
// One over each point's distances from the others.
inline constexpr float kOver0 = 1 / (kA2 * kB2), kOverA = 1 / (2 * kA2 * (kA2 - kB2)),
                       kOverB = 1 / (2 * kB2 * (kB2 - kA2));

PLUMB_AVX512_INLINE __m512 times(float factor, __m512 values) {
  return _mm512_set1_ps(factor) * values;
}

// B^T d
PLUMB_AVX512_INLINE void transform_inputs(const __m512 (&d)[6], __m512 (&v)[6]) {
  v[0] = times(kA2 * kB2, d[0]) - times(kA2 + kB2, d[2]) + d[4];
  const __m512 even_a = d[4] - times(kB2, d[2]), odd_a = times(kA, d[3] - times(kB2, d[1]));
  v[1] = even_a + odd_a;
  v[2] = even_a - odd_a;
  const __m512 even_b = d[4] - times(kA2, d[2]), odd_b = times(kB, d[3] - times(kA2, d[1]));
  v[3] = even_b + odd_b;
  v[4] = even_b - odd_b;
  v[5] = times(kA2 * kB2, d[1]) - times(kA2 + kB2, d[3]) + d[5];
}

// A^T m
PLUMB_AVX512_INLINE void transform_products(const __m512 (&m)[6], __m512 (&y)[4]) {
  const __m512 sum_a = m[1] + m[2], difference_a = m[1] - m[2];
  const __m512 sum_b = m[3] + m[4], difference_b = m[3] - m[4];
  y[0] = m[0] + sum_a + sum_b;
  y[1] = times(kA, difference_a) + times(kB, difference_b);
  y[2] = times(kA2, sum_a) + times(kB2, sum_b);
  y[3] = times(kA3, difference_a) + times(kB3, difference_b) + m[5];
}

// A d_y
PLUMB_AVX512_INLINE void transform_gradients(const __m512 (&d_y)[4], __m512 (&m)[6]) {
  m[0] = d_y[0];
  const __m512 even_a = d_y[0] + times(kA2, d_y[2]), odd_a = times(kA, d_y[1]) + times(kA3, d_y[3]);
  m[1] = even_a + odd_a;
  m[2] = even_a - odd_a;
  const __m512 even_b = d_y[0] + times(kB2, d_y[2]), odd_b = times(kB, d_y[1]) + times(kB3, d_y[3]);
  m[3] = even_b + odd_b;
  m[4] = even_b - odd_b;
  m[5] = d_y[3];
}

// G g
PLUMB_AVX512_INLINE void transform_weights(const __m512 (&g)[3], __m512 (&u)[6]) {
  u[0] = times(kOver0, g[0]);
  const __m512 even_a = times(kOverA, g[0] + times(kA2, g[2])), odd_a = times(kA * kOverA, g[1]);
  u[1] = even_a + odd_a;
  u[2] = even_a - odd_a;
  const __m512 even_b = times(kOverB, g[0] + times(kB2, g[2])), odd_b = times(kB * kOverB, g[1]);
  u[3] = even_b + odd_b;
  u[4] = even_b - odd_b;
  u[5] = g[2];
}

// G^T d_u
PLUMB_AVX512_INLINE void transform_weight_sums(const __m512 (&d_u)[6], __m512 (&d_g)[3]) {
  const __m512 sum_a = d_u[1] + d_u[2], difference_a = d_u[1] - d_u[2];
  const __m512 sum_b = d_u[3] + d_u[4], difference_b = d_u[3] - d_u[4];
  d_g[0] = times(kOver0, d_u[0]) + times(kOverA, sum_a) + times(kOverB, sum_b);
  d_g[1] = times(kA * kOverA, difference_a) + times(kB * kOverB, difference_b);
  d_g[2] = times(kA2 * kOverA, sum_a) + times(kB2 * kOverB, sum_b) + d_u[5];
}

// Vectors of 16 channels at (y, x): of a plane per point or kernel position, or …
template <typename Float>
struct Planes {
  Float* first = nullptr;
  std::int64_t plane = 0;  // floats
  int columns = 6;

  PLUMB_AVX512_INLINE __m512 load(int y, int x) const {
    return _mm512_load_ps(first + (y * columns + x) * plane);
  }
  PLUMB_AVX512_INLINE void store(int y, int x, __m512 values) const {
    _mm512_store_ps(first + (y * columns + x) * plane, values);
  }
};

// … of a tile of an image's block of channels, [height][width][16]; 0 outside of the image.
template <typename Float, bool kIsInside>
struct Pixels {
  Float* block = nullptr;
  std::int64_t top = 0, left = 0, height = 0, width = 0;

  PLUMB_AVX512_INLINE bool has(int y, int x) const {
    return kIsInside || (top + y >= 0 && top + y < height && left + x >= 0 && left + x < width);
  }
  PLUMB_AVX512_INLINE __m512 load(int y, int x) const {
    return has(y, x) ? _mm512_load_ps(block + ((top + y) * width + left + x) * 16) : _mm512_setzero_ps();
  }
  PLUMB_AVX512_INLINE void store(int y, int x, __m512 values) const {
    if (has(y, x)) _mm512_store_ps(block + ((top + y) * width + left + x) * 16, values);
  }
};

// In both dimensions, from kFrom x kFrom vectors to kTo x kTo.
template <auto kTransform, int kFrom, int kTo, typename From, typename To>
PLUMB_AVX512_INLINE void transform_tile(const From& from, const To& to) {
  __m512 rows[kFrom][kTo];
  for (int y = 0; y < kFrom; ++y) {
    __m512 row[kFrom];
#pragma GCC unroll 6
    for (int x = 0; x < kFrom; ++x) row[x] = from.load(y, x);
    kTransform(row, rows[y]);
  }
  for (int x = 0; x < kTo; ++x) {
    __m512 column[kFrom], made[kTo];
#pragma GCC unroll 6
    for (int y = 0; y < kFrom; ++y) column[y] = rows[y][x];
    kTransform(column, made);
#pragma GCC unroll 6
    for (int y = 0; y < kTo; ++y) to.store(y, x, made[y]);
  }
}

}  // namespace plumb::cpu::winograd
