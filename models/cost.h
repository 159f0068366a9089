// What a Graph costs, counted from its operations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/graph.h"

namespace plumb {

// Trained elements of the whole Graph.
std::int64_t parameter_count(const Graph& graph);

// Multiply-accumulates of one operation's forward pass for one image (convolutions and dense layers; others
// 0).
std::int64_t macs_per_image(const Graph& graph, const Op& op);
// … of the whole forward pass for one image. A training step costs about three times that.
std::int64_t macs_per_image(const Graph& graph);

// One row per operation with parameters, in the Graph's order.
struct LayerCost {
  std::string name;
  std::string kind;          // "conv", "bn", "fc"
  std::string weight_shape;  // conv: "64x3x7x7/s2/p3/g1"; bn: "64"; fc: "1000x2048"
  std::string out_shape;     // "64x112x112"; fc: "1000"
  std::int64_t parameters = 0;
  std::int64_t macs = 0;  // per image, forward
};
std::vector<LayerCost> layer_costs(const Graph& graph);

}  // namespace plumb
