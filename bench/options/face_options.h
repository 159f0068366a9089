// What bench_arcface has beside the options that all bench programs share: backbone, class centres and loss.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/options/option_table.h"
#include "models/arcface.h"

namespace plumb {

enum class FaceLoss { arcface, cosface, combined };

// What is empty here has a default that depends on another option (see resolve_face()).
struct FaceOptions {
  Backbone backbone = Backbone::r50;
  std::int64_t classes = 85742;           // of MS1M, as PLSC's benchmark has them
  std::optional<std::int64_t> embedding;  // 512; y1 128
  bool prelu_per_layer = false;
  std::optional<double> dropout;  // 0.4; y1 has none
  Head head = Head::sharded;
  std::optional<double> sample_rate;  // 0.1 with Head::sampled
  FaceLoss loss = FaceLoss::arcface;
  std::optional<Margins> margins;  // those of the loss
  double scale = 64;
  MarginLoss::Gradient margin_gradient = MarginLoss::Gradient::exact;
  bool fp32_head = true;
};

// Backbone and class centres, the loss.
OptionGroup backbone_group(FaceOptions& options);
OptionGroup margin_group(FaceOptions& options);

// Throws Error(usage) for options that contradict each other.
void check_face(const FaceOptions& options);

// Fills in what is empty: what a run has is what its "config" says.
FaceOptions resolve_face(FaceOptions options);

}  // namespace plumb
