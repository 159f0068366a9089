// The layers of a Graph as a table, and such tables in tests/data, which were counted apart from this
// project.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/graph.h"

namespace plumb {

// One row per operation with parameters, in the Graph's order, but for class centers; a norm with slopes has
// a second row for them.
struct LayerCost {
  std::string name;
  std::string kind;          // "conv", "bn", "prelu", "fc"
  std::string weight_shape;  // conv: "64x3x7x7/s2/p3/g1"; bn: "64"; prelu: "64" or "1"; fc: "1000x2048"
  std::string out_shape;     // "64x112x112"; fc: "1000"
  std::int64_t parameters = 0;
  std::int64_t macs = 0;  // per image, forward
};
std::vector<LayerCost> layer_costs(const Graph& graph);

// Rows of tests/data/<file>: name, kind, weight_shape, out_shape, parameters, MACs.
std::vector<LayerCost> read_layer_table(const std::string& file);

// Compares all but names.
void expect_same_cost(const LayerCost& layer, const LayerCost& wanted);

}  // namespace plumb
