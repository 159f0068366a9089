// What networks are made with; each takes what it has.
#pragma once

#include <cstdint>

#include "models/decay.h"
#include "models/graph.h"
#include "models/iresnet.h"

namespace plumb {

// Defaults are those of IResNet-50 with all class centres on every rank; models/catalogue.h has each model's.
struct ModelOptions {
  Backbone backbone = kIResNet50;  // of faces; the catalogue sets it
  std::int64_t batch = 128;
  std::int64_t image_size = 112;  // pixels, height and width
  double label_smoothing = 0;     // of a softmax loss
  // Face models only.
  std::int64_t embedding = 512;
  bool prelu_per_layer = false;  // PLSC's variant: one slope per layer, and the last norm's scale is trained
  double dropout = 0.4;          // of r50 and r100, in front of the last dense layer; 0: there is none
  std::int64_t classes = 85742;
  Margins margins;
  double scale = 64;
  MarginLoss::Gradient gradient = MarginLoss::Gradient::exact;
  Head head = Head::replicated;
  double sample_rate = 0.1;
  int rank = 0, world_size = 1;
  // All models.
  DecayRule decay = DecayRule::all;
  std::uint64_t seed = 0;  // of dropout and samples
};

}  // namespace plumb
