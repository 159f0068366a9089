// ResNet-50 v1.5 (He et al. 2015, arXiv:1512.03385, table 1; v1.5 puts the stride on the 3x3 convolution, as
// torchvision's resnet50 does), with torchvision's names, dims and parameter order.
#pragma once

#include <cstdint>

#include "models/model_builder.h"

namespace plumb {

struct ResNet50Options {
  std::int64_t batch = 1;
  std::int64_t image_size = 224;  // pixels, height and width; at least 32
  std::int64_t classes = 1000;
  double label_smoothing = 0.1;
  DecayRule decay = DecayRule::all;
};

Graph make_resnet50(const ResNet50Options& options);

}  // namespace plumb
