// Dropout masks: a pure function of (seed, layer, step, image, element), so devices, layouts and world sizes
// agree (Srivastava et al. 2014; Salmon et al., SC 2011, for the generator).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/random.h"

namespace plumb {

// One per layer; a plain struct that can be passed to kernels.
struct DropoutRule {
  PhiloxKey key{};              // stream_key(seed, layer)
  std::uint32_t threshold = 0;  // drops elements whose 32 random bits are below it
  float keep_scale = 1;         // 1 / (1 - probability)
};
// probability in [0, 1).
inline DropoutRule dropout_rule(std::uint64_t seed, std::string_view layer, double probability) {
  return {.key = stream_key(seed, layer),
          .threshold = static_cast<std::uint32_t>(std::min(std::round(probability * 0x1p32), 0x1p32 - 1)),
          .keep_scale = static_cast<float>(1 / (1 - probability))};
}

// 128 bits for four elements of an image in c, h, w order: block `element / 4` of image `sample` (counted
// over all ranks) in step `step`; element % 4 selects the word.
constexpr PhiloxBlock dropout_bits(PhiloxKey key, std::uint64_t step, std::uint64_t sample,
                                   std::uint32_t element_block) {
  return philox4x32(key, {element_block, static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(step),
                          static_cast<std::uint32_t>(sample >> 32)});
}

}  // namespace plumb
