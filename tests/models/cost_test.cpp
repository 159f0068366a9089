#include "models/cost.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "models/arcface.h"
#include "models/resnet50.h"
#include "tests/models/layer_table.h"

namespace plumb {
namespace {

// ResNet-50's table calls the shortcut's convolution and norm "down" and "downbn".
std::string torchvision_name(const std::string& name) {
  const auto dot = name.rfind('.');
  const std::string last = name.substr(dot + 1);
  if (last == "down") return name.substr(0, dot) + ".downsample.0";
  if (last == "downbn") return name.substr(0, dot) + ".downsample.1";
  return name;
}

// A table's MXNet name of an IResNet layer, from arcface_torch's: stage2_unit1_relu1 is layer2.0.prelu.
std::string arcface_torch_name(const std::string& name) {
  static const std::map<std::string, std::string> kOutside{{"conv0", "conv1"}, {"bn0", "bn1"},
                                                           {"relu0", "prelu"}, {"bn1", "bn2"},
                                                           {"pre_fc1", "fc"},  {"fc1", "features"}};
  static const std::map<std::string, std::string> kInside{{"bn1", "bn1"},
                                                          {"conv1", "conv1"},
                                                          {"bn2", "bn2"},
                                                          {"relu1", "prelu"},
                                                          {"conv2", "conv2"},
                                                          {"bn3", "bn3"},
                                                          {"conv1sc", "downsample.0"},
                                                          {"sc", "downsample.1"}};
  const auto last = name.rfind('_');
  if (!name.starts_with("stage")) return kOutside.at(name);
  const auto unit = name.find("_unit");
  const int number = std::stoi(name.substr(unit + 5, last - unit - 5));
  return "layer" + name.substr(5, unit - 5) + "." + std::to_string(number - 1) + "." +
         kInside.at(name.substr(last + 1));
}

std::string same_name(const std::string& name) {
  return name;
}

// A PReLU's output has all channels, whether it has one slope or many; the tables show one channel for one
// slope.
LayerCost as_tables_show_it(LayerCost layer) {
  if (layer.kind == "prelu") {
    layer.out_shape = layer.weight_shape + layer.out_shape.substr(layer.out_shape.find('x'));
  }
  return layer;
}

void expect_matches_table(const Graph& graph, const std::string& file, std::size_t layer_count,
                          std::string (*our_name)(const std::string&)) {
  SCOPED_TRACE(file);
  std::map<std::string, LayerCost> table;
  for (const LayerCost& row : read_layer_table(file)) table[our_name(row.name)] = row;
  ASSERT_EQ(table.size(), layer_count);
  const std::vector<LayerCost> layers = layer_costs(graph);
  EXPECT_EQ(layers.size(), layer_count);
  for (const LayerCost& layer : layers) {
    const auto wanted = table.find(layer.name);
    ASSERT_NE(wanted, table.end()) << layer.name;
    expect_same_cost(as_tables_show_it(layer), wanted->second);
  }
}

Graph arcface(Backbone backbone, std::int64_t embedding = 512, bool prelu_per_layer = false) {
  ModelOptions options;
  options.backbone = backbone;
  options.embedding = embedding;
  options.prelu_per_layer = prelu_per_layer;
  return make_arcface(options);
}

TEST(Cost, EveryLayerOfResNet50MatchesTheReferenceTable) {
  expect_matches_table(make_resnet50({}), "layers_resnet50v15.csv", 107, torchvision_name);
}

TEST(Cost, EveryLayerOfIResNet50MatchesTheReferenceTable) {
  expect_matches_table(arcface(kIResNet50), "layers_iresnet50.csv", 158, arcface_torch_name);
}

TEST(Cost, EveryLayerOfIResNet100MatchesTheReferenceTable) {
  expect_matches_table(arcface(kIResNet100), "layers_iresnet100.csv", 308, arcface_torch_name);
}

TEST(Cost, EveryLayerOfPlscsResNet50MatchesTheReferenceTable) {
  expect_matches_table(arcface(kIResNet50, 512, true), "layers_plsc_r50.csv", 158, arcface_torch_name);
}

TEST(Cost, EveryLayerOfMobileFaceNetMatchesTheReferenceTableByName) {
  expect_matches_table(arcface(kMobileFaceNet, 128), "layers_mobilefacenet_y1_128.csv", 133, same_name);
  expect_matches_table(arcface(kMobileFaceNet, 512), "layers_mobilefacenet_y1_512.csv", 133, same_name);
}

void expect_totals(const Graph& graph, std::int64_t parameters, std::int64_t macs) {
  EXPECT_EQ(backbone_parameter_count(graph), parameters);
  EXPECT_EQ(macs_per_image(graph), macs);
}

TEST(Cost, TotalsArePublishedOnes) {
  expect_totals(make_resnet50({}), 25557032, 4089184256);
  expect_totals(arcface(kIResNet50), 43590848, 6309330944);
  expect_totals(arcface(kIResNet100), 65156160, 12089606144);
  expect_totals(arcface(kIResNet50, 512, true), 43584985, 6309330944);
  expect_totals(arcface(kMobileFaceNet, 128), 1003264, 220965376);
  expect_totals(arcface(kMobileFaceNet, 512), 1201024, 221161984);
}

TEST(Cost, DoesNotDependOnTheBatch) {
  ResNet50Options options;
  options.batch = 7;
  expect_totals(make_resnet50(options), 25557032, 4089184256);
}

TEST(Cost, ConvolutionsScaleWithThePixelsOfTheImage) {
  ResNet50Options options;
  options.image_size = 448;
  constexpr std::int64_t kDense = 2048 * 1000;
  EXPECT_EQ(macs_per_image(make_resnet50(options)) - kDense, 4 * (4089184256 - kDense));
}

TEST(Cost, HeadIsCountedApartAndForAllRanks) {
  ModelOptions options;
  options.backbone = kMobileFaceNet;
  options.embedding = 128;
  options.classes = 1003;
  for (const Head head : {Head::replicated, Head::sharded}) {
    options.head = head;
    options.world_size = 4;
    options.rank = 3;
    const Graph graph = make_arcface(options);
    expect_totals(graph, 1003264, 220965376);
    EXPECT_EQ(head_parameter_count(graph), 1003 * 128);
    EXPECT_EQ(head_macs_per_image(graph), 1003 * 128);
    EXPECT_EQ(parameter_count(graph), 1003264 + (head == Head::sharded ? 250 : 1003) * 128);
  }
}

TEST(Cost, ASampledHeadMultipliesWithItsSampleAlone) {
  ModelOptions options;
  options.backbone = kMobileFaceNet;
  options.batch = 2;
  options.classes = 1003;  // 251, 251, 251, 250 on the ranks
  options.head = Head::sampled;
  options.sample_rate = 0.5;
  options.world_size = 4;
  const Graph graph = make_arcface(options);
  EXPECT_EQ(head_macs_per_image(graph), 4 * 125 * 512);
  EXPECT_EQ(head_parameter_count(graph), 1003 * 512);
}

TEST(Cost, SoftmaxLossHasNoHead) {
  EXPECT_EQ(head_parameter_count(make_resnet50({})), 0);
  EXPECT_EQ(head_macs_per_image(make_resnet50({})), 0);
  EXPECT_EQ(parameter_count(make_resnet50({})), backbone_parameter_count(make_resnet50({})));
}

}  // namespace
}  // namespace plumb
