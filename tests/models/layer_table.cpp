#include "tests/models/layer_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string_view>

#include "base/text.h"
#include "models/cost.h"

namespace plumb {
namespace {

constexpr std::string_view kWeightSuffix = ".weight";

std::string joined(const std::vector<std::int64_t>& dims) {
  return fmt::format("{}", fmt::join(dims, "x"));
}

std::string image_shape(const Shape& shape) {
  return joined({shape.c, shape.h, shape.w});
}

void add_rows(const Graph& graph, const Conv& conv, std::vector<LayerCost>& rows) {
  const Parameter& weight = graph.parameters[conv.weight];
  rows.push_back({.name = conv.name,
                  .kind = "conv",
                  .weight_shape = fmt::format("{}/s{}/p{}/g{}", joined(weight.dims), conv.stride,
                                              conv.padding, conv.groups),
                  .out_shape = image_shape(graph.values[conv.out].shape),
                  .parameters = weight.elements(),
                  .macs = macs_per_image(graph, conv)});
}

void add_rows(const Graph& graph, const BatchNorm& norm, std::vector<LayerCost>& rows) {
  const Parameter& scale = graph.parameters[norm.scale];
  const std::string out_shape = image_shape(graph.values[norm.out].shape);
  rows.push_back({.name = norm.name,
                  .kind = "bn",
                  .weight_shape = joined(scale.dims),
                  .out_shape = out_shape,
                  .parameters = scale.elements() + graph.parameters[norm.bias].elements()});
  if (!norm.slope) return;
  const Parameter& slope = graph.parameters[*norm.slope];
  rows.push_back({.name = slope.name.substr(0, slope.name.size() - kWeightSuffix.size()),
                  .kind = "prelu",
                  .weight_shape = joined(slope.dims),
                  .out_shape = out_shape,
                  .parameters = slope.elements()});
}

void add_rows(const Graph& graph, const Dense& dense, std::vector<LayerCost>& rows) {
  const Parameter& weight = graph.parameters[dense.weight];
  rows.push_back({.name = dense.name,
                  .kind = "fc",
                  .weight_shape = joined(weight.dims),
                  .out_shape = std::to_string(graph.values[dense.out].shape.c),
                  .parameters = weight.elements() + graph.parameters[dense.bias].elements(),
                  .macs = macs_per_image(graph, dense)});
}

template <typename OtherOp>
void add_rows(const Graph&, const OtherOp&, std::vector<LayerCost>&) {}

}  // namespace

std::vector<LayerCost> layer_costs(const Graph& graph) {
  std::vector<LayerCost> rows;
  for (const Op& op : graph.ops) std::visit([&](const auto& one) { add_rows(graph, one, rows); }, op);
  return rows;
}

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
