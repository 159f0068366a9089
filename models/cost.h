// Parameters and multiply-accumulates of a Graph, counted from its operations.
#pragma once

#include <cstdint>

#include "models/graph.h"

namespace plumb {

// Elements of all parameters that this rank has.
std::int64_t parameter_count(const Graph& graph);
// … of those that aren't class centers of a margin loss, trained or not: what models are published with.
std::int64_t backbone_parameter_count(const Graph& graph);
// … of the class centers of all ranks; 0 if there is no margin loss.
std::int64_t head_parameter_count(const Graph& graph);

// Multiply-accumulates of one operation's forward pass for one image (convolutions and dense layers; others
// 0).
std::int64_t macs_per_image(const Graph& graph, const Op& op);
// … of the whole forward pass for one image, but for class centers. A training step costs about three times
// that.
std::int64_t macs_per_image(const Graph& graph);
// … of one image with the class centers of all ranks that a step takes (of a sample, rows as margin_rows
// counts them); 0 if there is no margin loss.
std::int64_t head_macs_per_image(const Graph& graph);

}  // namespace plumb
