// MobileFaceNet y1 (Chen et al. 2018, arXiv:1804.07573, table 1) with the blocks [1, 4, 6, 2], the output GDC
// and the layer names of insightface 863a7ea9, recognition/symbol/fmobilefacenet.py.
#pragma once

#include "models/backbone.h"

namespace plumb {

// Has no dropout.
ValueId add_mobilefacenet(ModelBuilder& net, ValueId images, const BackboneOptions& options);
inline constexpr Backbone kMobileFaceNet{"y1", add_mobilefacenet};

}  // namespace plumb
