// Face recognition as a Graph: a backbone, and a margin loss over class centers that may be sharded. Also
// the options of all networks; each network uses those that apply to it.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/model_builder.h"

namespace plumb {

inline constexpr std::int64_t kMaxEmbedding = std::int64_t{1} << 16;
inline constexpr std::int64_t kMaxClasses = (std::int64_t{1} << 31) - 1;  // labels and samples are i32

struct ModelOptions;

struct Backbone {
  std::string_view name;  // of the graphs that it makes
  // Embeddings [n, 1, 1, embedding] of images [n, h, w, 3], h = w a multiple of 16.
  ValueId (*add)(ModelBuilder& net, ValueId images, const ModelOptions& options) = nullptr;
  bool operator==(const Backbone&) const = default;
};

// In iresnet.cpp and mobilefacenet.cpp.
ValueId add_iresnet50(ModelBuilder& net, ValueId images, const ModelOptions& options);
ValueId add_iresnet100(ModelBuilder& net, ValueId images, const ModelOptions& options);
ValueId add_mobilefacenet(ModelBuilder& net, ValueId images, const ModelOptions& options);
inline constexpr Backbone kIResNet50{"r50", add_iresnet50};
inline constexpr Backbone kIResNet100{"r100", add_iresnet100};
inline constexpr Backbone kMobileFaceNet{"y1", add_mobilefacenet};

// Defaults are those of IResNet-50 with all class centers on every rank; models/catalogue.h has each model's.
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

// The end of every backbone: a dense layer, which starts as in insightface 863a7ea9, train.py (Xavier,
// gaussian, factor "out", magnitude 2), and a norm (symbol_utils.py, get_fc1).
inline ValueId add_embedding(ModelBuilder& net, const std::string& dense, const std::string& norm, ValueId in,
                             const ModelOptions& options) {
  const DenseInitializers start{he_fan_out(options.embedding), {Initializer::Kind::constant, 0}};
  const ValueId out = net.dense(dense, in, options.embedding, start);
  return net.batch_norm(norm, out, {.epsilon = 2e-5, .fixed_scale = !options.prelu_per_layer});
}

// The Graph is named after its backbone; its last parameter is "head.weight". Image sizes are multiples of
// 16; published results use 112. Throws Error(usage) for an embedding that is not a multiple of 8, or fewer
// classes than ranks that share them.
Graph make_arcface(const ModelOptions& options);

}  // namespace plumb
