// Face recognition as a Graph: a backbone, and a margin loss over class centres that ranks may share out.
#pragma once

#include <cstdint>

#include "models/decay.h"
#include "models/graph.h"

namespace plumb {

inline constexpr std::int64_t kMaxEmbedding = std::int64_t{1} << 16;
inline constexpr std::int64_t kMaxClasses = (std::int64_t{1} << 31) - 1;  // labels and samples are i32

// r50, r100: IResNet (insightface's fresnet, unit 3, output E); y1: MobileFaceNet.
enum class Backbone { r50, r100, y1 };

struct ArcFaceOptions {
  Backbone backbone = Backbone::r50;
  std::int64_t batch = 128;
  std::int64_t image_size = 112;  // a multiple of 16; published results have 112
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
  DecayRule decay = DecayRule::all;
  std::uint64_t seed = 0;  // of dropout and samples
};

// The graph's model is "r50", "r100" or "y1"; its last parameter is "head.weight". Parameters have the names
// of insightface's arcface_torch (r50, r100) or of the layers of its MobileFaceNet (y1). Throws Error(usage).
Graph make_arcface(const ArcFaceOptions& options);

}  // namespace plumb
