#include "models/resnet50.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "models/cost.h"
#include "tests/models/graph_order.h"

namespace plumb {
namespace {

// Names of torchvision's resnet50().named_parameters(), written down independently of the builder.
std::vector<std::string> torchvision_parameter_names() {
  std::vector<std::string> names;
  const auto add_pair = [&](const std::string& conv, const std::string& norm) {
    names.insert(names.end(), {conv + ".weight", norm + ".weight", norm + ".bias"});
  };
  add_pair("conv1", "bn1");
  const int blocks[] = {3, 4, 6, 3};
  for (int layer = 1; layer <= 4; ++layer) {
    for (int block = 0; block < blocks[layer - 1]; ++block) {
      const std::string prefix = "layer" + std::to_string(layer) + "." + std::to_string(block) + ".";
      for (const char* number : {"1", "2", "3"}) add_pair(prefix + "conv" + number, prefix + "bn" + number);
      if (block == 0) add_pair(prefix + "downsample.0", prefix + "downsample.1");
    }
  }
  names.insert(names.end(), {"fc.weight", "fc.bias"});
  return names;
}

ExitCode code_of_failure(const ResNet50Options& options) {
  try {
    make_resnet50(options);
  } catch (const Error& error) {
    return error.code();
  }
  return ExitCode::ok;
}

const BatchNorm& norm_named(const Graph& graph, const std::string& name) {
  for (const Op& op : graph.ops) {
    if (const auto* norm = std::get_if<BatchNorm>(&op); norm && norm->name == name) return *norm;
  }
  throw std::runtime_error("no norm " + name);
}

int decaying(DecayRule rule) {
  ResNet50Options options;
  options.decay = rule;
  int count = 0;
  for (const Parameter& parameter : make_resnet50(options).parameters) count += parameter.decays ? 1 : 0;
  return count;
}

TEST(ResNet50, ParametersHaveTorchvisionsNamesInItsOrder) {
  const Graph graph = make_resnet50({});
  std::vector<std::string> names;
  for (const Parameter& parameter : graph.parameters) names.push_back(parameter.name);
  EXPECT_EQ(names.size(), 161U);
  EXPECT_EQ(names, torchvision_parameter_names());
}

TEST(ResNet50, HasRunningMeanAndVarianceOfEveryNorm) {
  const Graph graph = make_resnet50({});
  std::int64_t elements = 0;
  for (const Statistic& statistic : graph.statistics) {
    elements += statistic.channels;
    EXPECT_EQ(statistic.initial, statistic.name.ends_with(".running_var") ? 1 : 0) << statistic.name;
  }
  EXPECT_EQ(graph.statistics.size(), 106U);
  EXPECT_EQ(elements, 53120);
}

TEST(ResNet50, OperationsReadOnlyWhatEarlierOnesMade) {
  expect_runs_in_order(make_resnet50({}));
}

TEST(ResNet50, ResidualsEnterTheLastNormOfEachBlock) {
  const Graph graph = make_resnet50({});
  int residuals = 0;
  for (const Op& op : graph.ops) {
    const auto* norm = std::get_if<BatchNorm>(&op);
    if (!norm) continue;
    const bool is_last = norm->name.ends_with(".bn3");
    EXPECT_EQ(norm->residual.has_value(), is_last) << norm->name;
    EXPECT_EQ(norm->activation == Activation::relu, !norm->name.ends_with("downsample.1")) << norm->name;
    if (!norm->residual) continue;
    ++residuals;
    EXPECT_EQ(graph.values[*norm->residual].shape, graph.values[norm->out].shape) << norm->name;
  }
  EXPECT_EQ(residuals, 16);
  EXPECT_EQ(graph.values[*norm_named(graph, "layer2.0.bn3").residual].name, "layer2.0.downsample.1");
  EXPECT_EQ(graph.values[*norm_named(graph, "layer2.1.bn3").residual].name, "layer2.0.bn3");
}

TEST(ResNet50, DecayRulesPickTheTensorsThatTheirScriptsPick) {
  EXPECT_EQ(decaying(DecayRule::all), 161);
  EXPECT_EQ(decaying(DecayRule::no_bn), 63);
  EXPECT_EQ(decaying(DecayRule::weights_only), 54);
}

TEST(ResNet50, InitializersAreTorchvisions) {
  const Graph graph = make_resnet50({});
  for (const Parameter& parameter : graph.parameters) {
    const Initializer& init = parameter.initializer;
    if (parameter.dims.size() == 4) {
      EXPECT_EQ(init.kind, Initializer::Kind::normal);
      EXPECT_DOUBLE_EQ(init.number,
                       std::sqrt(2.0 / (parameter.dims[0] * parameter.dims[2] * parameter.dims[3])));
    } else if (parameter.name.starts_with("fc.")) {
      EXPECT_EQ(init.kind, Initializer::Kind::uniform);
      EXPECT_DOUBLE_EQ(init.number, 1 / std::sqrt(2048.0));
    } else {
      EXPECT_EQ(init.kind, Initializer::Kind::constant);
      EXPECT_EQ(init.number, parameter.name.ends_with(".weight") ? 1 : 0) << parameter.name;
    }
  }
}

TEST(ResNet50, BatchImageSizeAndClassesShapeTheGraph) {
  ResNet50Options options;
  options.batch = 3;
  options.image_size = 65;
  options.classes = 10;
  const Graph graph = make_resnet50(options);
  EXPECT_EQ(graph.batch(), 3);
  EXPECT_EQ(graph.values.front().shape, (Shape{3, 65, 65, 3}));
  EXPECT_EQ(graph.values.back().shape, (Shape{3, 1, 1, 10}));
  EXPECT_EQ(graph.values[norm_named(graph, "layer4.2.bn3").out].shape, (Shape{3, 3, 3, 2048}));
  EXPECT_EQ(parameter_count(graph), 25557032 - 990 * 2049);
}

TEST(ResNet50, RefusesOptionsThatMakeNoNetwork) {
  const auto with = [](auto change) {
    ResNet50Options options;
    change(options);
    return code_of_failure(options);
  };
  EXPECT_EQ(with([](auto& o) { o.batch = 0; }), ExitCode::usage);
  EXPECT_EQ(with([](auto& o) { o.batch = -1; }), ExitCode::usage);
  EXPECT_EQ(with([](auto& o) { o.image_size = 31; }), ExitCode::usage);
  EXPECT_EQ(with([](auto& o) { o.image_size = 1 << 20; }), ExitCode::usage);
  EXPECT_EQ(with([](auto& o) { o.classes = 0; }), ExitCode::usage);
  EXPECT_EQ(with([](auto& o) { o.label_smoothing = 1; }), ExitCode::usage);
  EXPECT_EQ(with([](auto& o) { o.label_smoothing = std::nan(""); }), ExitCode::usage);
  EXPECT_EQ(with([](auto& o) { o.image_size = 32; }), ExitCode::ok);
  EXPECT_EQ(with([](auto& o) { o.batch = 1000000; }), ExitCode::ok);
}

}  // namespace
}  // namespace plumb
