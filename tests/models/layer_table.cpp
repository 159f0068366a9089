#include "tests/models/layer_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace plumb {

std::vector<LayerCost> read_layer_table(const std::string& file) {
  std::vector<LayerCost> layers;
  std::ifstream in(std::string(PLUMB_TEST_DATA) + "/" + file);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::istringstream row(line);
    std::vector<std::string> cells;
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    layers.push_back({cells.at(0), cells.at(1), cells.at(2), cells.at(3), std::stoll(cells.at(4)),
                      std::stoll(cells.at(5))});
  }
  return layers;
}

void expect_same_cost(const LayerCost& layer, const LayerCost& wanted) {
  SCOPED_TRACE(layer.name);
  EXPECT_EQ(layer.kind, wanted.kind);
  EXPECT_EQ(layer.weight_shape, wanted.weight_shape);
  EXPECT_EQ(layer.out_shape, wanted.out_shape);
  EXPECT_EQ(layer.parameters, wanted.parameters);
  EXPECT_EQ(layer.macs, wanted.macs);
}

}  // namespace plumb
