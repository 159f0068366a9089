// Options of all networks; each network uses its own subset.
#pragma once

#include <cstdint>

#include "models/decay.h"
#include "models/graph.h"
#include "models/iresnet.h"

namespace plumb {

// Defaults are IResNet-50's, with all class centres on every rank; models/catalogue.h has each model's.
struct ModelOptions {
  Backbone backbone = kIResNet50;  // for faces; set by the catalogue
  std::int64_t batch = 128;
  std::int64_t image_size = 112;  // pixels, height and width
  double label_smoothing = 0;     // for softmax losses
  // Face models only.
  std::int64_t embedding = 512;
  bool prelu_per_layer = false;  // PLSC's variant: one slope per layer, and a trained scale in the last norm
  double dropout = 0.4;          // r50 and r100, before the last dense layer; 0: none
  std::int64_t classes = 85742;
  Margins margins;
  double scale = 64;
  MarginLoss::Gradient gradient = MarginLoss::Gradient::exact;
  Head head = Head::replicated;
  double sample_rate = 0.1;
  int rank = 0, world_size = 1;
  // All models.
  DecayRule decay = DecayRule::all;
  std::uint64_t seed = 0;  // for dropout and samples
};

}  // namespace plumb
