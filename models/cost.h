// Parameters and multiply-accumulates of a Graph, counted from its operations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/graph.h"

namespace plumb {

// Elements of all parameters on this rank.
std::int64_t parameter_count(const Graph& graph);
// The same without class centres, trained or not, as published for models.
std::int64_t backbone_parameter_count(const Graph& graph);
// Class-centre elements of all ranks; 0 without a margin loss.
std::int64_t head_parameter_count(const Graph& graph);

// Multiply-accumulates of an operation's forward pass per image (convolutions and dense layers; others 0).
std::int64_t macs_per_image(const Graph& graph, const Op& op);
// Multiply-accumulates of the whole forward pass per image, without class centres. A training step costs
// about three times as much.
std::int64_t macs_per_image(const Graph& graph);
// Multiply-accumulates per image of the class centres a step uses on all ranks (sampled: rows as margin_rows
// counts them); 0 without a margin loss.
std::int64_t head_macs_per_image(const Graph& graph);

// One row per operation with parameters, in Graph order, without class centres; a norm with slopes has a
// second row for them.
struct LayerCost {
  std::string name;
  std::string kind;          // "conv", "bn", "prelu", "fc"
  std::string weight_shape;  // conv: "64x3x7x7/s2/p3/g1"; bn: "64"; prelu: "64" or "1"; fc: "1000x2048"
  std::string out_shape;     // "64x112x112"; fc: "1000"
  std::int64_t parameters = 0;
  std::int64_t macs = 0;  // per image, forward
};
std::vector<LayerCost> layer_costs(const Graph& graph);

}  // namespace plumb
