// VDPBF16PS multiplies pairs of bf16 and adds both products to an fp32. Here the pairs are of pixels, over
// which d_weight is summed. So both operands are packed into panels where the values of two pixels stand side
// by side: d_out as [32 channels at a time][pair of pixels][32 channels][2], a block of the input, once for
// each kernel position, as [half of the block][pair of pixels][8 channels][2]. The sums of 8 input x 32
// output channels stay in registers over a chunk of pixels. Threads share out channels, not pixels.
#include "kernels/cpu/conv_weights_bf16.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#define PLUMB_AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace plumb::cpu {
namespace {

constexpr std::int64_t kLayoutBlock = 16;                                // channels, of the layouts
constexpr std::int64_t kWeightBlock = kLayoutBlock * kLayoutBlock;       // elements, of d_weight's layout
constexpr std::int64_t kTileIn = 8, kTileOut = 32;                       // channels
constexpr std::int64_t kInPair = 2 * kTileIn, kDOutPair = 2 * kTileOut;  // elements in panels
constexpr std::int64_t kMostPairs = 320;  // of a chunk: a tile's panels fit the first-level cache
constexpr std::int64_t kMostPanels = 16;  // of d_out at a time: they fit the second-level cache

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

// Part `index` of `parts` of 0 … count - 1.
Range part_of(std::int64_t count, std::int64_t parts, std::int64_t index) {
  return {count * index / parts, count * (index + 1) / parts};
}

std::int64_t taps_of(const ConvShape& s) {
  return s.kernel * s.kernel;
}

std::int64_t pixels_of(const ConvShape& s) {
  return s.images * s.out_height * s.out_width;
}

std::int64_t pairs_of(const ConvShape& s) {
  return ceil_div(pixels_of(s), 2);
}

// Threads share out the input's or the output's channels, whichever leaves each less to pack.
bool shares_out_input(const ConvShape& s, int threads) {
  const std::int64_t in = taps_of(s) * s.in_channels;
  return s.out_channels + in / threads < s.out_channels / threads + in;
}

// Where pixels first … first + count - 1 of the output meet the input at one kernel position, in blocks of
// channels; -1 in the padding and past the last pixel.
void find_places(const ConvShape& s, std::int64_t tap, std::int64_t first, std::int64_t count,
                 std::int32_t* places) {
  const std::int64_t image_stride = s.in_channels / kLayoutBlock * s.in_height * s.in_width;
  const std::int64_t end = std::min(first + count, pixels_of(s));
  for (std::int64_t pixel = first; pixel < end;) {
    const std::int64_t row = pixel / s.out_width, x = pixel % s.out_width;
    const std::int64_t y = row % s.out_height * s.stride + tap / s.kernel - s.padding;
    const auto start = static_cast<std::int32_t>(row / s.out_height * image_stride + y * s.in_width);
    const auto begin = static_cast<std::int32_t>(x * s.stride + tap % s.kernel - s.padding);
    const auto width = static_cast<std::int32_t>(y >= 0 && y < s.in_height ? s.in_width : 0);
    const auto stride = static_cast<std::int32_t>(s.stride);
    const auto run = static_cast<std::int32_t>(std::min(s.out_width - x, end - pixel));
    for (std::int32_t i = 0; i < run; ++i) {
      const std::int32_t at = begin + i * stride;
      places[i] = at >= 0 && at < width ? start + at : -1;
    }
    places += run;
    pixel += run;
  }
  std::fill_n(places, first + count - end, -1);
}

// The output's pixels themselves, for find_places.
ConvShape output_of(const ConvShape& s) {
  return {.images = s.images,
          .in_channels = s.out_channels,
          .in_height = s.out_height,
          .in_width = s.out_width,
          .out_height = s.out_height,
          .out_width = s.out_width};
}

PLUMB_AVX512_BF16 inline __m256i load_pixel(const Bf16* block, std::int32_t place) {
  return place < 0 ? _mm256_setzero_si256()
                   : _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + place * kLayoutBlock));
}

// For permutex2var: elements `first` of two vectors of 16, elements first + 1, …
constexpr std::array<std::uint16_t, 32> by_turns(int first) {
  std::array<std::uint16_t, 32> order{};
  for (int i = 0; i < 32; ++i) order[i] = static_cast<std::uint16_t>(first + i / 2 + i % 2 * 16);
  return order;
}

// Two pixels' channels first … first + 7, side by side.
template <int kFirst>
PLUMB_AVX512_BF16 inline void store_half(__m256i left, __m256i right, Bf16* to) {
  alignas(64) static constexpr auto kOrder = by_turns(kFirst);
  const __m256i order = _mm256_load_si256(reinterpret_cast<const __m256i*>(kOrder.data()));
  _mm256_store_si256(reinterpret_cast<__m256i*>(to), _mm256_permutex2var_epi16(left, order, right));
}

// One block of channels; each pair of pixels' second 8 channels stand `half_stride` after the first.
PLUMB_AVX512_BF16 void pack(const Bf16* block, const std::int32_t* places, std::int64_t pairs, Bf16* panel,
                            std::int64_t pair_stride, std::int64_t half_stride) {
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const __m256i left = load_pixel(block, places[2 * pair]), right = load_pixel(block, places[2 * pair + 1]);
    store_half<0>(left, right, panel + pair * pair_stride);
    store_half<8>(left, right, panel + pair * pair_stride + half_stride);
  }
}

// A tile of d_weight [2 blocks of 16][8 input channels][16 output channels] (+)= in^T d_out, the blocks
// `block_stride` apart. Meanwhile fetches as many pixels of a block at `ahead` into the second-level cache.
template <bool kIsFirst>
PLUMB_AVX512_BF16 void multiply(const Bf16* in, const Bf16* d_out, std::int64_t pairs, float* d_weight,
                                std::int64_t block_stride, const Bf16* ahead) {
  float* const second_weight = d_weight + block_stride;
  __m512 first_sums[kTileIn], second_sums[kTileIn];
#pragma GCC unroll 8
  for (int i = 0; i < kTileIn; ++i) {
    first_sums[i] = kIsFirst ? _mm512_setzero_ps() : _mm512_load_ps(d_weight + i * kLayoutBlock);
    second_sums[i] = kIsFirst ? _mm512_setzero_ps() : _mm512_load_ps(second_weight + i * kLayoutBlock);
  }
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    _mm_prefetch(reinterpret_cast<const char*>(ahead + pair * 2 * kLayoutBlock), _MM_HINT_T1);
    const auto first = (__m512bh)_mm512_load_si512(d_out + pair * kDOutPair);
    const auto second = (__m512bh)_mm512_load_si512(d_out + pair * kDOutPair + kDOutPair / 2);
#pragma GCC unroll 8
    for (int i = 0; i < kTileIn; ++i) {
      int values = 0;
      std::memcpy(&values, in + pair * kInPair + 2 * i, sizeof(values));
      const auto factors = (__m512bh)_mm512_set1_epi32(values);
      first_sums[i] = _mm512_dpbf16_ps(first_sums[i], first, factors);
      second_sums[i] = _mm512_dpbf16_ps(second_sums[i], second, factors);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kTileIn; ++i) {
    _mm512_store_ps(d_weight + i * kLayoutBlock, first_sums[i]);
    _mm512_store_ps(second_weight + i * kLayoutBlock, second_sums[i]);
  }
}

// Sizes of one thread's workspace: panels of d_out and of the input, places of pixels.
struct Sizes {
  std::int64_t pairs = 0, d_out_panels = 0;  // of a chunk

  explicit Sizes(const ConvShape& s)
      : pairs(ceil_div(pairs_of(s), ceil_div(pairs_of(s), kMostPairs))),
        d_out_panels(std::min(kMostPanels, s.out_channels / kTileOut)) {}
  std::int64_t d_out_elements() const { return d_out_panels * pairs * kDOutPair; }
  std::int64_t in_elements() const { return 2 * pairs * kInPair; }
  std::size_t bytes() const {
    return static_cast<std::size_t>(d_out_elements() + in_elements()) * sizeof(Bf16) +
           static_cast<std::size_t>(ceil_div(2 * pairs, kLayoutBlock) * kLayoutBlock) * sizeof(std::int32_t);
  }
};

// What one thread computes: some blocks of input channels by some pairs of blocks of output channels.
class WeightsPart {
 public:
  WeightsPart(const ConvShape& shape, Range in_blocks, Range out_pairs, const Bf16* in, const Bf16* d_out,
              float* d_weight, std::byte* workspace)
      : shape_(shape),
        in_blocks_(in_blocks),
        out_pairs_(out_pairs),
        in_(in),
        d_out_(d_out),
        d_weight_(d_weight),
        d_out_panels_(reinterpret_cast<Bf16*>(workspace)),
        in_panel_(d_out_panels_ + sizes_.d_out_elements()),
        places_(reinterpret_cast<std::int32_t*>(in_panel_ + sizes_.in_elements())) {}

  void run() {
    for (std::int64_t begin = 0; begin < pairs_of(shape_); begin += sizes_.pairs)
      for (std::int64_t first = out_pairs_.begin; first < out_pairs_.end; first += sizes_.d_out_panels)
        add_chunk({begin, std::min(begin + sizes_.pairs, pairs_of(shape_))},
                  {first, std::min(first + sizes_.d_out_panels, out_pairs_.end)});
  }

 private:
  void add_chunk(Range chunk, Range out_pairs) {
    const std::int64_t pairs = chunk.size(), taps = taps_of(shape_);
    const std::int64_t block_stride = shape_.in_channels / kLayoutBlock * taps * kWeightBlock;
    find_places(output_of(shape_), 0, 2 * chunk.begin, 2 * pairs, places_);
    for (std::int64_t block = 2 * out_pairs.begin; block < 2 * out_pairs.end; ++block)
      pack(d_out_ + block * out_pixels_ * kLayoutBlock, places_, pairs,
           panel(block / 2 - out_pairs.begin, pairs) + block % 2 * kDOutPair / 2, kDOutPair, kDOutPair / 4);
    std::int64_t call = 0;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      find_places(shape_, tap, 2 * chunk.begin, 2 * pairs, places_);
      for (std::int64_t block = in_blocks_.begin; block < in_blocks_.end; ++block) {
        pack(in_ + block * in_pixels_ * kLayoutBlock, places_, pairs, in_panel_, kInPair, pairs * kInPair);
        for (std::int64_t pair = out_pairs.begin; pair < out_pairs.end; ++pair)
          for (std::int64_t half = 0; half < 2; ++half)
            (chunk.begin == 0 ? multiply<true> : multiply<false>)(in_panel_ + half * pairs * kInPair,
                                                                  panel(pair - out_pairs.begin, pairs), pairs,
                                                                  d_weight_ + 2 * pair * block_stride +
                                                                      (block * taps + tap) * kWeightBlock +
                                                                      half * kTileIn * kLayoutBlock,
                                                                  block_stride,
                                                                  ahead(call++, 2 * chunk.end, out_pairs));
      }
    }
  }

  Bf16* panel(std::int64_t index, std::int64_t pairs) const {
    return d_out_panels_ + index * pairs * kDOutPair;
  }

  // While a chunk is multiplied memory would be idle: each call fetches a block of the next chunk's pixels,
  // as far as they are of one image.
  const Bf16* ahead(std::int64_t call, std::int64_t pixel, Range out_pairs) const {
    const std::int64_t blocks = 2 * out_pairs.size();
    if (pixel >= pixels_of(shape_) || call >= blocks + in_blocks_.size()) return in_panel_;
    const std::int64_t image = pixel / out_pixels_, rest = pixel % out_pixels_;
    if (call < blocks)
      return d_out_ +
             ((image * shape_.out_channels / kLayoutBlock + 2 * out_pairs.begin + call) * out_pixels_ +
              rest) *
                 kLayoutBlock;
    const std::int64_t block = in_blocks_.begin + call - blocks;
    return in_ + ((image * shape_.in_channels / kLayoutBlock + block) * in_pixels_ +
                  rest * shape_.stride * shape_.stride) *
                     kLayoutBlock;
  }

  ConvShape shape_;
  Sizes sizes_{shape_};
  std::int64_t in_pixels_ = shape_.in_height * shape_.in_width;
  std::int64_t out_pixels_ = shape_.out_height * shape_.out_width;
  Range in_blocks_, out_pairs_;
  const Bf16 *in_, *d_out_;
  float* d_weight_;
  Bf16 *d_out_panels_, *in_panel_;
  std::int32_t* places_;
};

}  // namespace

bool can_sum_weights_bf16(const ConvShape& s, int threads) {
  if (s.in_channels % kLayoutBlock != 0 || s.out_channels % kTileOut != 0) return false;
  const std::int64_t most =
      std::max(s.in_channels * s.in_height * s.in_width, s.out_channels * s.out_height * s.out_width);
  if (s.images * most / kLayoutBlock > std::numeric_limits<std::int32_t>::max()) return false;  // of places
  const std::int64_t units =
      shares_out_input(s, threads) ? s.in_channels / kLayoutBlock : s.out_channels / kTileOut;
  return units % threads == 0 || units >= 8 * threads;  // else threads wait for the one with most
}

std::size_t sum_weights_bf16_workspace(const ConvShape& shape, int threads) {
  return static_cast<std::size_t>(threads) * Sizes(shape).bytes();
}

void sum_weights_bf16(const ConvShape& s, int threads, const Bf16* in, const Bf16* d_out, float* d_weight,
                      std::byte* workspace) {
  const Range in_blocks{0, s.in_channels / kLayoutBlock}, out_pairs{0, s.out_channels / kTileOut};
  const bool by_input = shares_out_input(s, threads);
#pragma omp parallel for schedule(static, 1)
  for (int part = 0; part < threads; ++part)
    WeightsPart(s, by_input ? part_of(in_blocks.end, threads, part) : in_blocks,
                by_input ? out_pairs : part_of(out_pairs.end, threads, part), in, d_out, d_weight,
                workspace + static_cast<std::size_t>(part) * Sizes(s).bytes())
        .run();
}

}  // namespace plumb::cpu
