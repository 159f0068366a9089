// MobileFaceNet y1 (Chen et al. 2018, arXiv:1804.07573, table 1) with the blocks [1, 4, 6, 2], the output GDC
// and the layer names of insightface 863a7ea9, recognition/symbol/fmobilefacenet.py.
#pragma once

#include "models/backbone.h"

namespace plumb {

// Embeddings [n, 1, 1, embedding] of images [n, h, w, 3], h = w a multiple of 16. It has no dropout.
ValueId add_mobilefacenet(ModelBuilder& net, ValueId images, const BackboneOptions& options);

}  // namespace plumb
