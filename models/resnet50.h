// ResNet-50 v1.5 (He et al. 2015, arXiv:1512.03385, table 1; v1.5 puts the stride on the 3x3 convolution, as
// torchvision's resnet50 does), with torchvision's names, dims and parameter order.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "models/model_builder.h"

namespace plumb {

// A stage of bottleneck blocks. `width`: channels inside a block; its output has four times as many.
// `stride`: of the first block's 3x3 convolution and shortcut.
struct ResNetStage {
  int blocks = 1;
  std::int64_t width = 64;
  int stride = 1;
};

inline constexpr std::array<ResNetStage, 4> kResNet50Stages{
    {{3, 64, 1}, {4, 128, 2}, {6, 256, 2}, {3, 512, 2}}};

struct ResNet50Options {
  std::int64_t batch = 1;
  std::int64_t image_size = 224;  // pixels, height and width; at least 32
  std::int64_t classes = 1000;
  double label_smoothing = 0.1;
  DecayRule decay = DecayRule::all;
  std::span<const ResNetStage> stages = kResNet50Stages;  // others make another network
};

Graph make_resnet50(const ResNet50Options& options);

}  // namespace plumb
