#include "models/dropout.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace plumb {

DropoutRule dropout_rule(std::uint64_t seed, std::string_view layer, double probability) {
  constexpr long long kMost = std::numeric_limits<std::uint32_t>::max();
  return {.key = stream_key(seed, layer),
          .threshold = static_cast<std::uint32_t>(std::min(std::llround(probability * 0x1p32), kMost)),
          .keep_scale = static_cast<float>(1 / (1 - probability))};
}

}  // namespace plumb
