#include "base/random.h"

#include <algorithm>

#include "base/hash.h"

namespace plumb {
namespace {

// Finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a bijection that spreads every bit.
std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
  return bits ^ (bits >> 31);
}

// out[i] = value i % 4 of values(block i / 4) from `first` on. Blocks are made by the batch, in loops that
// vectorize.
template <typename Values>
void fill(PhiloxKey key, std::span<float> out, std::uint64_t first, const Values& values) {
  constexpr std::size_t kBlocks = 64;
  std::size_t skipped = first % 4;
  for (std::uint64_t block = first / 4; !out.empty(); block += kBlocks) {
    std::array<float, 4 * kBlocks> batch;
    for (std::size_t i = 0; i < kBlocks; ++i) {
      const std::array<float, 4> four = values(random_block(key, block + i));
      for (std::size_t j = 0; j < 4; ++j) batch[4 * i + j] = four[j];
    }
    const std::size_t taken = std::min(batch.size() - skipped, out.size());
    std::copy_n(batch.begin() + static_cast<std::ptrdiff_t>(skipped), taken, out.begin());
    out = out.subspan(taken);
    skipped = 0;
  }
}

}  // namespace

PhiloxKey stream_key(std::uint64_t seed, std::string_view name) {
  const std::uint64_t key = mixed(mixed(seed + 0x9E3779B97F4A7C15) ^ fnv1a(name));
  return {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
}

void fill_uniform(PhiloxKey key, float low, float high, std::span<float> out, std::uint64_t first) {
  // Rounding may carry a value up to `high` itself; the largest float below it is as good.
  const float below_high = std::nextafter(high, low);
  const auto scaled = [&](std::uint32_t bits) {
    return std::min(low + (high - low) * uniform_from(bits), below_high);
  };
  fill(key, out, first, [&](const PhiloxBlock& bits) {
    return std::array<float, 4>{scaled(bits[0]), scaled(bits[1]), scaled(bits[2]), scaled(bits[3])};
  });
}

void fill_normal(PhiloxKey key, float mean, float deviation, std::span<float> out, std::uint64_t first) {
  fill(key, out, first, [&](const PhiloxBlock& bits) {
    const auto [a, b] = normal_from(bits[0], bits[1]);
    const auto [c, d] = normal_from(bits[2], bits[3]);
    return std::array<float, 4>{mean + deviation * a, mean + deviation * b, mean + deviation * c,
                                mean + deviation * d};
  });
}

}  // namespace plumb
