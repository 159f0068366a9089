// Row operations (16 floats) and row iteration for the batch norm loops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/element_types.h"
#include "kernels/cpu/norm_loops.h"

namespace plumb::cpu {

// Rows summed in fp32 before adding to a double: 4 KiB, fits the L1 cache.
inline constexpr std::int64_t kChunkRows = 64;

// The widest vector that the compiler may use, 64 bytes with AVX-512, or halves down to it: left to the
// compiler, wider vectors take more than twice the time.
inline constexpr int kVectorLanes = std::min<int>(kLanes, __BIGGEST_ALIGNMENT__ / sizeof(float));
using Vector = float __attribute__((vector_size(kVectorLanes * sizeof(float))));
template <typename Half>
struct Halves {
  Half low{}, high{};
};
template <int kCount>
struct LanesOf {
  using Type = Halves<typename LanesOf<kCount / 2>::Type>;
};
template <>
struct LanesOf<kVectorLanes> {
  using Type = Vector;
};
using Lanes = LanesOf<kLanes>::Type;

template <typename Half>
Halves<Half> operator+(Halves<Half> a, Halves<Half> b) {
  return {a.low + b.low, a.high + b.high};
}
template <typename Half>
Halves<Half> operator-(Halves<Half> a, Halves<Half> b) {
  return {a.low - b.low, a.high - b.high};
}
template <typename Half>
Halves<Half> operator*(Halves<Half> a, Halves<Half> b) {
  return {a.low * b.low, a.high * b.high};
}
template <typename Half>
Halves<Half> operator*(Halves<Half> a, float b) {
  return {a.low * b, a.high * b};
}
inline Vector where_positive(Vector test, Vector yes, Vector no) {
  return test > 0 ? yes : no;
}
template <typename Half>
Halves<Half> where_positive(Halves<Half> test, Halves<Half> yes, Halves<Half> no) {
  return {where_positive(test.low, yes.low, no.low), where_positive(test.high, yes.high, no.high)};
}

inline void load(const float* from, Vector& into) {
  std::memcpy(&into, from, sizeof into);
}
inline void store(float* into, Vector vector) {
  std::memcpy(into, &vector, sizeof vector);
}
// As to_float and from_float do.
using Bf16Vector = std::uint16_t __attribute__((vector_size(kVectorLanes * sizeof(Bf16))));
using WordVector = std::uint32_t __attribute__((vector_size(sizeof(Vector))));
inline void load(const Bf16* from, Vector& into) {
  Bf16Vector bits;
  std::memcpy(&bits, from, sizeof bits);
  into = reinterpret_cast<Vector>(__builtin_convertvector(bits, WordVector) << 16);
}
inline void store(Bf16* into, Vector vector) {
  const auto words = reinterpret_cast<WordVector>(vector);
  const WordVector rounded = words + 0x7fff + ((words >> 16) & 1);
  const auto bits =
      __builtin_convertvector((vector == vector ? rounded : words | 0x400000) >> 16, Bf16Vector);
  std::memcpy(static_cast<void*>(into), &bits, sizeof bits);
}
template <typename T, typename Half>
void load(const T* from, Halves<Half>& into) {
  load(from, into.low);
  load(from + sizeof(Half) / sizeof(float), into.high);
}
template <typename T, typename Half>
void store(T* into, Halves<Half> lanes) {
  store(into, lanes.low);
  store(into + sizeof(Half) / sizeof(float), lanes.high);
}
template <typename T>
Lanes load(const T* from) {
  Lanes lanes;
  load(from, lanes);
  return lanes;
}

// Row access: all lanes, or only the first `width` with the others zero.
struct WholeRow {
  template <typename T>
  Lanes read(const T* from) const {
    return load(from);
  }
  template <typename T>
  void write(T* into, Lanes lanes) const {
    store(into, lanes);
  }
};
struct PartialRow {
  int width = 0;
  template <typename T>
  Lanes read(const T* from) const {
    T values[kLanes]{};
    std::copy(from, from + width, values);
    return load(values);
  }
  template <typename T>
  void write(T* into, Lanes lanes) const {
    T values[kLanes];
    store(values, lanes);
    std::copy(values, values + width, into);
  }
};

// Calls visit(offset, rows, row) for runs of rows of one slice of a group: `rows` rows starting at `offset`,
// accessed through `row`.
template <typename Visit>
void for_each_run(const NormTiling& tiling, std::int64_t group, std::int64_t slice, Visit visit) {
  const std::int64_t all = tiling.images * tiling.rows;
  const std::int64_t end = all * (slice + 1) / tiling.slices;
  const int width = tiling.width(group);
  for (std::int64_t row = all * slice / tiling.slices; row < end;) {
    const std::int64_t first = row % tiling.rows, count = std::min(end - row, tiling.rows - first);
    const std::int64_t offset =
        row / tiling.rows * tiling.image_stride + group * tiling.group_stride + first * tiling.row_stride;
    const bool has_tail = tiling.tail > 0 && first + count == tiling.rows;
    if (width < kLanes)
      visit(offset, count, PartialRow{width});
    else
      visit(offset, count - has_tail, WholeRow{});
    if (has_tail) visit(offset + (count - 1) * tiling.row_stride, std::int64_t{1}, PartialRow{tiling.tail});
    row += count;
  }
}

// Per-channel values spread to the lanes of a group, 0 for padding. one_for_all: one value for all channels.
inline Lanes lanes_of(const NormTiling& tiling, std::int64_t group, const float* per_channel,
                      bool one_for_all = false) {
  float values[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::int64_t channel = tiling.channel(group, lane);
    values[lane] = channel < 0 ? 0 : per_channel[one_for_all ? 0 : channel];
  }
  return load(values);
}

// Factors that normalize a group's lanes; `at` is a NormForward or a NormBackward.
struct GroupFactors {
  Lanes mean, factor, bias, slope;
};
GroupFactors factors_of(const auto& at, std::int64_t group) {
  const NormTiling& tiling = at.form.tiling;
  return {.mean = lanes_of(tiling, group, at.mean),
          .factor = lanes_of(tiling, group, at.scale) * lanes_of(tiling, group, at.inv_std),
          .bias = lanes_of(tiling, group, at.bias),
          .slope = at.slope ? lanes_of(tiling, group, at.slope, at.form.one_slope) : Lanes{}};
}

inline void add_to(LaneSums& sums, Lanes lanes) {
  float values[kLanes];
  store(values, lanes);
#pragma omp simd
  for (int lane = 0; lane < kLanes; ++lane) sums[static_cast<std::size_t>(lane)] += values[lane];
}

// Sum for channel `first_lane` of a group over all slices; `parts`: one per slice, `stride` apart.
inline double sum_of_channel(const NormTiling& tiling, const LaneSums* parts, std::int64_t stride,
                             int first_lane) {
  double sum = 0;
  for (std::int64_t slice = 0; slice < tiling.slices; ++slice)
    for (int lane = first_lane; lane < kLanes; lane += tiling.period)
      sum += parts[slice * stride][static_cast<std::size_t>(lane)];
  return sum;
}

// Runs first(group, slice) for all slices, then finish(group), then second(group, slice), in an order that
// lets the second pass hit the cache if possible (NormOrder).
template <typename First, typename FinishGroup, typename Second>
void in_two_passes(const NormTiling& tiling, const NormOrder& order, First first, FinishGroup finish,
                   Second second) {
  if (order.group_by_group) {
#pragma omp parallel for schedule(static)
    for (std::int64_t group = 0; group < tiling.groups; ++group) {
      for (std::int64_t slice = 0; slice < tiling.slices; ++slice) first(group, slice);
      finish(group);
      for (std::int64_t slice = 0; slice < tiling.slices; ++slice) second(group, slice);
    }
    return;
  }
#pragma omp parallel
  for (std::int64_t begin = 0; begin < tiling.groups; begin += order.groups_at_once) {
    const std::int64_t end = std::min(begin + order.groups_at_once, tiling.groups);
#pragma omp for schedule(static)
    for (std::int64_t item = begin * tiling.slices; item < end * tiling.slices; ++item)
      first(item / tiling.slices, item % tiling.slices);
#pragma omp for schedule(static)
    for (std::int64_t group = begin; group < end; ++group) finish(group);
#pragma omp for schedule(static)
    for (std::int64_t item = begin * tiling.slices; item < end * tiling.slices; ++item)
      second(item / tiling.slices, item % tiling.slices);
  }
}

}  // namespace plumb::cpu
