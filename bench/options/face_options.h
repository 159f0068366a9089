// Options for models with a margin head, in addition to the shared ones: backbone, class centers
// and loss.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/options/option_table.h"
#include "models/catalogue.h"

namespace plumb {

enum class FaceLoss { arcface, cosface, combined };

// In half precision, of the last dense layer, the last norm and the class centers. tf32: stored in fp32.
enum class HeadDtype { fp32, tf32, same };

// What is empty here has a default that depends on another option (see resolve_face()).
struct FaceOptions {
  std::int64_t classes = 85742;           // of MS1M, as PLSC's benchmark has them
  std::optional<std::int64_t> embedding;  // the model's
  bool prelu_per_layer = false;
  std::optional<double> dropout;  // the model's
  Head head = Head::sharded;
  std::optional<double> sample_rate;  // 0.1 with Head::sampled
  FaceLoss loss = FaceLoss::arcface;
  std::optional<Margins> margins;  // those of the loss
  double scale = 64;
  MarginLoss::Gradient margin_gradient = MarginLoss::Gradient::exact;
  HeadDtype head_dtype = HeadDtype::fp32;
};

// `models`: those that the program trains.
std::vector<OptionSpec> backbone_options(FaceOptions& options, const std::vector<const Model*>& models);
OptionGroup margin_group(FaceOptions& options);

// Throws Error(usage) for options that contradict each other, or that `model`, one of `models`, has not.
void check_face(const FaceOptions& options, const Model& model, const std::vector<const Model*>& models);

// Fills in what is empty: what a run has is what its "config" says.
FaceOptions resolve_face(FaceOptions options, const Model& model);

}  // namespace plumb
