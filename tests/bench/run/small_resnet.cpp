#include "tests/bench/run/small_resnet.h"

#include <array>

#include "models/resnet50.h"

namespace plumb {
namespace {

// As in ResNet-50, some shortcuts convolve and some don't, with both strides.
constexpr std::array<ResNetStage, 4> kStages{{{1, 32, 1}, {2, 32, 2}, {2, 64, 2}, {2, 64, 2}}};

Graph make(const ModelOptions& options) {
  return make_resnet50({.batch = options.batch,
                        .image_size = options.image_size,
                        .label_smoothing = options.label_smoothing,
                        .decay = options.decay,
                        .stages = kStages});
}

}  // namespace

std::span<const Model> small_resnet() {
  static const std::array<Model, 1> models = [] {
    Model model = *find_model("resnet50");
    model.make = make;
    return std::array{model};
  }();
  return models;
}

}  // namespace plumb
