// IResNet: insightface's fresnet with unit 3 and output E (863a7ea9, recognition/symbol/fresnet.py), with the
// names and the parameter order of its PyTorch port (7fadd420, arcface_torch/backbones/iresnet.py).
#pragma once

#include "models/backbone.h"

namespace plumb {

ValueId add_iresnet50(ModelBuilder& net, ValueId images, const BackboneOptions& options);
ValueId add_iresnet100(ModelBuilder& net, ValueId images, const BackboneOptions& options);
inline constexpr Backbone kIResNet50{"r50", add_iresnet50};
inline constexpr Backbone kIResNet100{"r100", add_iresnet100};

}  // namespace plumb
