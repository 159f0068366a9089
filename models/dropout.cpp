#include "models/dropout.h"

#include <cmath>

namespace plumb {

DropoutRule dropout_rule(std::uint64_t seed, std::string_view layer, double probability) {
  return {.key = stream_key(seed, layer),
          .threshold = static_cast<std::uint32_t>(std::llround(probability * 0x1p32)),
          .keep_scale = static_cast<float>(1 / (1 - probability))};
}

}  // namespace plumb
