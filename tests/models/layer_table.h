// Layer tables in tests/data, counted independently of this project.
#pragma once

#include <string>
#include <vector>

#include "models/cost.h"

namespace plumb {

// Rows of tests/data/<file>: name, kind, weight_shape, out_shape, parameters, MACs.
std::vector<LayerCost> read_layer_table(const std::string& file);

// Compares everything except names.
void expect_same_cost(const LayerCost& layer, const LayerCost& wanted);

}  // namespace plumb
