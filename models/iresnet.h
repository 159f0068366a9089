// IResNet: insightface's fresnet with unit 3 and output E (863a7ea9, recognition/symbol/fresnet.py), with the
// names and the parameter order of its PyTorch port (7fadd420, arcface_torch/backbones/iresnet.py).
#pragma once

#include <array>

#include "models/backbone.h"

namespace plumb {

// Units of the four stages, which have 64, 128, 256 and 512 channels.
using IResNetUnits = std::array<int, 4>;
inline constexpr IResNetUnits kIResNet50Units{3, 4, 14, 3};
inline constexpr IResNetUnits kIResNet100Units{3, 13, 30, 3};

// Embeddings [n, 1, 1, embedding] of images [n, h, w, 3], h = w a multiple of 16.
ValueId add_iresnet(ModelBuilder& net, ValueId images, const IResNetUnits& units,
                    const BackboneOptions& options);

}  // namespace plumb
