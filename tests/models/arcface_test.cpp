#include "models/arcface.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "tests/models/graph_order.h"
#include "tests/models/layer_table.h"

namespace plumb {
namespace {

// Names of arcface_torch's IResNet(…).named_parameters(), written down independently of the builder.
std::vector<std::string> arcface_torch_names(const std::vector<int>& units) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& layer, std::initializer_list<const char*> kinds) {
    for (const char* kind : kinds) names.push_back(layer + kind);
  };
  add("conv1", {".weight"});
  add("bn1", {".weight", ".bias"});
  add("prelu", {".weight"});
  for (int layer = 1; layer <= 4; ++layer) {
    for (int unit = 0; unit < units[static_cast<std::size_t>(layer - 1)]; ++unit) {
      const std::string prefix = "layer" + std::to_string(layer) + "." + std::to_string(unit) + ".";
      add(prefix + "bn1", {".weight", ".bias"});
      add(prefix + "conv1", {".weight"});
      add(prefix + "bn2", {".weight", ".bias"});
      add(prefix + "prelu", {".weight"});
      add(prefix + "conv2", {".weight"});
      add(prefix + "bn3", {".weight", ".bias"});
      if (unit > 0) continue;
      add(prefix + "downsample.0", {".weight"});
      add(prefix + "downsample.1", {".weight", ".bias"});
    }
  }
  add("bn2", {".weight", ".bias"});
  add("fc", {".weight", ".bias"});
  add("features", {".weight", ".bias"});
  return names;
}

// Parameter names from a table whose rows lack ".weight" and ".bias".
std::vector<std::string> names_of_table(const std::string& file) {
  std::vector<std::string> names;
  for (const LayerCost& row : read_layer_table(file)) {
    names.push_back(row.name + ".weight");
    if (row.kind == "bn" || row.kind == "fc") names.push_back(row.name + ".bias");
  }
  return names;
}

ModelOptions options_of(Backbone backbone) {
  ModelOptions options;
  options.backbone = backbone;
  if (backbone == kMobileFaceNet) options.embedding = 128;
  return options;
}

Graph graph_of(Backbone backbone) {
  return make_arcface(options_of(backbone));
}

constexpr Backbone kBackbones[] = {kIResNet50, kIResNet100, kMobileFaceNet};

// Names of the backbone's parameters; the class centers come last.
std::vector<std::string> backbone_names(const Graph& graph) {
  EXPECT_EQ(graph.parameters.back().name, "head.weight");
  std::vector<std::string> names;
  for (const Parameter& parameter : graph.parameters) names.push_back(parameter.name);
  names.pop_back();
  return names;
}

const Parameter& parameter_named(const Graph& graph, const std::string& name) {
  for (const Parameter& parameter : graph.parameters) {
    if (parameter.name == name) return parameter;
  }
  throw std::runtime_error("no parameter " + name);
}

template <typename Kind>
std::vector<Kind> ops_of(const Graph& graph) {
  std::vector<Kind> found;
  for (const Op& op : graph.ops) {
    if (const auto* one = std::get_if<Kind>(&op)) found.push_back(*one);
  }
  return found;
}

std::int64_t trained_backbone_elements(const Graph& graph) {
  std::int64_t count = 0;
  for (const Parameter& parameter : graph.parameters) {
    if (parameter.trained && parameter.name != "head.weight") count += parameter.elements();
  }
  return count;
}

TEST(ArcFace, IResNetsHaveTheNamesAndOrderOfArcfaceTorch) {
  const Graph r50 = graph_of(kIResNet50), r100 = graph_of(kIResNet100);
  EXPECT_EQ(r50.model, "r50");
  EXPECT_EQ(r100.model, "r100");
  EXPECT_EQ(backbone_names(r50), arcface_torch_names({3, 4, 14, 3}));
  EXPECT_EQ(backbone_names(r100), arcface_torch_names({3, 13, 30, 3}));
  EXPECT_EQ(r50.parameters.size(), 238U + 1);
  EXPECT_EQ(r100.parameters.size(), 463U + 1);
  EXPECT_EQ(r50.statistics.size(), 2U * 79);
  EXPECT_EQ(r100.statistics.size(), 2U * 154);
}

TEST(ArcFace, MobileFaceNetHasTheNamesAndOrderOfItsLayers) {
  const Graph y1 = graph_of(kMobileFaceNet);
  EXPECT_EQ(y1.model, "y1");
  EXPECT_EQ(backbone_names(y1), names_of_table("layers_mobilefacenet_y1_128.csv"));
  EXPECT_EQ(y1.parameters.size(), 184U + 1);
  EXPECT_EQ(y1.statistics.size(), 2U * 50);
  EXPECT_EQ(y1.statistics.back().name, "fc1.running_var");
}

TEST(ArcFace, AllButTheLastScaleAreTrained) {
  EXPECT_EQ(trained_backbone_elements(graph_of(kIResNet50)), 43590336);
  EXPECT_EQ(trained_backbone_elements(graph_of(kIResNet100)), 65155648);
  EXPECT_EQ(trained_backbone_elements(graph_of(kMobileFaceNet)), 1003136);
  EXPECT_FALSE(parameter_named(graph_of(kIResNet50), "features.weight").trained);
  EXPECT_FALSE(parameter_named(graph_of(kMobileFaceNet), "fc1.weight").trained);
}

TEST(ArcFace, PlscsVariantHasOneSlopePerLayerAndTrainsTheLastScale) {
  ModelOptions options = options_of(kIResNet50);
  options.prelu_per_layer = true;
  const Graph graph = make_arcface(options);
  EXPECT_EQ(graph.parameters.size(), 238U + 1);
  EXPECT_EQ(trained_backbone_elements(graph), 43584985);
  int slopes = 0;
  for (const BatchNorm& norm : ops_of<BatchNorm>(graph)) {
    if (!norm.slope) continue;
    ++slopes;
    EXPECT_EQ(graph.parameters[*norm.slope].dims, std::vector<std::int64_t>{1});
  }
  EXPECT_EQ(slopes, 25);
}

TEST(ArcFace, OperationsReadOnlyWhatEarlierOnesMade) {
  for (const Backbone backbone : kBackbones) expect_runs_in_order(graph_of(backbone));
}

TEST(ArcFace, HeadBeginsWithTheLastDenseLayer) {
  for (const Backbone backbone : kBackbones) {
    const Graph graph = graph_of(backbone);
    ASSERT_EQ(graph.head_begin, graph.ops.size() - 3);
    EXPECT_TRUE(std::holds_alternative<Dense>(graph.ops[graph.head_begin]));
    EXPECT_TRUE(std::holds_alternative<BatchNorm>(graph.ops[graph.head_begin + 1]));
    EXPECT_EQ(graph.values[std::get<MarginLoss>(graph.ops.back()).in].shape,
              (Shape{128, 1, 1, backbone == kMobileFaceNet ? 128 : 512}));
  }
}

TEST(ArcFace, NormsHaveTheirEpsilonMomentumAndActivation) {
  for (const Backbone backbone : kBackbones) {
    const Graph graph = graph_of(backbone);
    for (const BatchNorm& norm : ops_of<BatchNorm>(graph)) {
      const bool is_last = norm.name == "features" || norm.name == "fc1";
      EXPECT_EQ(norm.epsilon, backbone == kMobileFaceNet && !is_last ? 1e-3 : 2e-5) << norm.name;
      EXPECT_EQ(norm.momentum, 0.1) << norm.name;
      EXPECT_EQ(norm.activation == Activation::prelu, norm.slope.has_value()) << norm.name;
      EXPECT_FALSE(norm.slope && norm.residual) << norm.name;
      if (!norm.slope) continue;
      const Parameter& slope = graph.parameters[*norm.slope];
      EXPECT_EQ(slope.dims, graph.parameters[norm.scale].dims);
      EXPECT_EQ(slope.initializer.kind, Initializer::Kind::constant);
      EXPECT_EQ(slope.initializer.number, 0.25);
    }
  }
}

TEST(ArcFace, ResidualsEnterTheLastNormOfTheirUnit) {
  const auto residuals = [](const Graph& graph, const char* end) {
    int count = 0;
    for (const BatchNorm& norm : ops_of<BatchNorm>(graph)) {
      if (!norm.residual) continue;
      ++count;
      EXPECT_TRUE(norm.name.ends_with(end)) << norm.name;
      EXPECT_EQ(graph.values[*norm.residual].shape, graph.values[norm.out].shape) << norm.name;
    }
    return count;
  };
  EXPECT_EQ(residuals(graph_of(kIResNet50), ".bn3"), 24);
  EXPECT_EQ(residuals(graph_of(kIResNet100), ".bn3"), 49);
  EXPECT_EQ(residuals(graph_of(kMobileFaceNet), "_conv_proj_batchnorm"), 12);
}

TEST(ArcFace, WeightsStartByTheirFanOutAndCentresByAHundredth) {
  for (const Backbone backbone : kBackbones) {
    const Graph graph = graph_of(backbone);
    for (const Conv& conv : ops_of<Conv>(graph)) {
      const Parameter& weight = graph.parameters[conv.weight];
      EXPECT_EQ(weight.initializer.kind, Initializer::Kind::normal);
      EXPECT_DOUBLE_EQ(
          weight.initializer.number,
          std::sqrt(2.0 / static_cast<double>(weight.dims[0] * weight.dims[2] * weight.dims[3])));
    }
    const Dense dense = ops_of<Dense>(graph).back();
    const Parameter& weight = graph.parameters[dense.weight];
    EXPECT_DOUBLE_EQ(weight.initializer.number, std::sqrt(2.0 / static_cast<double>(weight.dims[0])));
    EXPECT_EQ(graph.parameters[dense.bias].initializer.number, 0);
    EXPECT_EQ(graph.parameters.back().initializer.kind, Initializer::Kind::normal);
    EXPECT_EQ(graph.parameters.back().initializer.number, 0.01);
  }
}

TEST(ArcFace, IResNetsDropFeaturesInFrontOfTheDenseLayerIfAsked) {
  ModelOptions options = options_of(kIResNet50);
  options.seed = 9;
  const Graph graph = make_arcface(options);
  const Dropout& dropout = std::get<Dropout>(graph.ops[graph.head_begin - 1]);
  EXPECT_EQ(dropout.probability, 0.4);
  EXPECT_EQ(dropout.seed, 9U);
  EXPECT_EQ(graph.values[dropout.in].name, "bn2");
  options.dropout = 0;
  EXPECT_TRUE(ops_of<Dropout>(make_arcface(options)).empty());
  EXPECT_TRUE(ops_of<Dropout>(graph_of(kMobileFaceNet)).empty());
}

TEST(ArcFace, ImageSizeShapesTheDenseLayerAndTheGlobalConvolution) {
  ModelOptions options = options_of(kIResNet50);
  options.image_size = 48;
  EXPECT_EQ(parameter_named(make_arcface(options), "fc.weight").dims,
            (std::vector<std::int64_t>{512, 512 * 3 * 3}));
  options = options_of(kMobileFaceNet);
  options.image_size = 32;
  const Graph graph = make_arcface(options);
  EXPECT_EQ(parameter_named(graph, "conv_6dw7_7_conv2d.weight").dims,
            (std::vector<std::int64_t>{512, 1, 2, 2}));
  EXPECT_EQ(parameter_named(graph, "pre_fc1.weight").dims, (std::vector<std::int64_t>{128, 512}));
}

int decaying(Backbone backbone, DecayRule rule) {
  ModelOptions options = options_of(backbone);
  options.decay = rule;
  int count = 0;
  for (const Parameter& parameter : make_arcface(options).parameters) count += parameter.decays ? 1 : 0;
  return count;
}

TEST(ArcFace, DecayRulesPickTheirTensors) {
  EXPECT_EQ(decaying(kIResNet50, DecayRule::all), 237 + 1);
  EXPECT_EQ(decaying(kIResNet50, DecayRule::weights_only), 53 + 1 + 1);
  // Convolutions, slopes, shortcut norms, fc, the last norm's bias, class centers.
  EXPECT_EQ(decaying(kIResNet50, DecayRule::no_bn), 53 + 25 + 4 * 2 + 2 + 1 + 1);
  EXPECT_EQ(decaying(kMobileFaceNet, DecayRule::all), 183 + 1);
  EXPECT_EQ(decaying(kMobileFaceNet, DecayRule::no_bn), 49 + 33 + 2 + 1 + 1);
}

}  // namespace
}  // namespace plumb
