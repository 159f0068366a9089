#include "models/cost.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "models/resnet50.h"

namespace plumb {
namespace {

// The table calls the shortcut's convolution and norm "down" and "downbn".
std::string torchvision_name(const std::string& name) {
  const auto dot = name.rfind('.');
  const std::string last = name.substr(dot + 1);
  if (last == "down") return name.substr(0, dot) + ".downsample.0";
  if (last == "downbn") return name.substr(0, dot) + ".downsample.1";
  return name;
}

// Rows of the reference table by torchvision's names.
std::map<std::string, LayerCost> reference_layers() {
  std::map<std::string, LayerCost> layers;
  std::ifstream in(std::string(PLUMB_TEST_DATA) + "/layers_resnet50v15.csv");
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::istringstream row(line);
    std::vector<std::string> cells;
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    const LayerCost cost{
        torchvision_name(cells.at(0)), cells.at(1), cells.at(2), cells.at(3), std::stoll(cells.at(4)),
        std::stoll(cells.at(5))};
    layers[cost.name] = cost;
  }
  return layers;
}

TEST(Cost, EveryLayerOfResNet50MatchesTheReferenceTable) {
  const auto reference = reference_layers();
  ASSERT_EQ(reference.size(), 107U);
  const std::vector<LayerCost> layers = layer_costs(make_resnet50({}));
  EXPECT_EQ(layers.size(), reference.size());
  for (const LayerCost& layer : layers) {
    ASSERT_TRUE(reference.contains(layer.name)) << layer.name;
    const LayerCost& wanted = reference.at(layer.name);
    EXPECT_EQ(layer.kind, wanted.kind) << layer.name;
    EXPECT_EQ(layer.weight_shape, wanted.weight_shape) << layer.name;
    EXPECT_EQ(layer.out_shape, wanted.out_shape) << layer.name;
    EXPECT_EQ(layer.parameters, wanted.parameters) << layer.name;
    EXPECT_EQ(layer.macs, wanted.macs) << layer.name;
  }
}

TEST(Cost, TotalsOfResNet50) {
  const Graph graph = make_resnet50({});
  EXPECT_EQ(parameter_count(graph), 25557032);
  EXPECT_EQ(macs_per_image(graph), 4089184256);
}

TEST(Cost, DoesNotDependOnTheBatch) {
  ResNet50Options options;
  options.batch = 7;
  const Graph graph = make_resnet50(options);
  EXPECT_EQ(parameter_count(graph), 25557032);
  EXPECT_EQ(macs_per_image(graph), 4089184256);
}

TEST(Cost, ConvolutionsScaleWithThePixelsOfTheImage) {
  ResNet50Options options;
  options.image_size = 448;
  constexpr std::int64_t kDense = 2048 * 1000;
  EXPECT_EQ(macs_per_image(make_resnet50(options)) - kDense, 4 * (4089184256 - kDense));
}

}  // namespace
}  // namespace plumb
