// Options and layers shared by all face backbones.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/model_builder.h"

namespace plumb {

struct BackboneOptions {
  std::int64_t embedding = 512;
  bool prelu_per_layer = false;  // one slope per layer, and a trained scale in the last norm
  double dropout = 0;            // before the last dense layer; 0: none
  std::uint64_t seed = 0;        // for dropout
};

struct Backbone {
  std::string_view name;  // name of its Graphs
  // Embeddings [n, 1, 1, embedding] of images [n, h, w, 3], h = w a multiple of 16.
  ValueId (*add)(ModelBuilder& net, ValueId images, const BackboneOptions& options) = nullptr;
  bool operator==(const Backbone&) const = default;
};

// Epsilon of the last norm in every backbone (insightface 863a7ea9, symbol_utils.py, get_fc1).
inline constexpr double kEmbeddingEpsilon = 2e-5;

// Start of the last dense layer (insightface 863a7ea9, train.py: Xavier, gaussian, factor "out", magnitude
// 2).
inline DenseInitializers embedding_start(std::int64_t embedding) {
  return {.weight = he_fan_out(embedding), .bias = {Initializer::Kind::constant, 0}};
}

// The norm after it.
inline NormOptions embedding_norm(const BackboneOptions& options) {
  return {.epsilon = kEmbeddingEpsilon, .fixed_scale = !options.prelu_per_layer};
}

}  // namespace plumb
