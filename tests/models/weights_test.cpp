#include "models/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "models/error.h"
#include "models/resnet50.h"

namespace plumb {
namespace {

Graph small_graph() {
  Graph graph;
  graph.model = "small";
  graph.parameters = {{"conv.weight", {4, 3, 3, 3}, {Initializer::Kind::normal, 0.5}},
                      {"bn.weight", {4}, {Initializer::Kind::constant, 1}},
                      {"fc.weight", {10, 4}, {Initializer::Kind::uniform, 0.25}}};
  graph.statistics = {{"bn.running_mean", 4, 0}, {"bn.running_var", 4, 1}};
  return graph;
}

std::string refusal(const Graph& graph, const TensorFile& file) {
  try {
    tensors_for(graph, file, "some/file.safetensors");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return "";
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(InitialTensors, CoverEveryParameterAndStatistic) {
  const Graph graph = small_graph();
  const TensorMap tensors = initial_tensors(graph, 1);
  ASSERT_EQ(tensors.size(), 5U);
  for (const Parameter& parameter : graph.parameters) {
    EXPECT_EQ(tensors.at(parameter.name).dims, parameter.dims);
    EXPECT_EQ(static_cast<std::int64_t>(tensors.at(parameter.name).values.size()), parameter.elements());
  }
  EXPECT_EQ(tensors.at("bn.weight").values, std::vector<float>(4, 1));
  EXPECT_EQ(tensors.at("bn.running_mean").values, std::vector<float>(4, 0));
  EXPECT_EQ(tensors.at("bn.running_var").values, std::vector<float>(4, 1));
  for (float value : tensors.at("fc.weight").values) EXPECT_LE(std::abs(value), 0.25F);
}

TEST(InitialTensors, DependOnSeedAndNameAlone) {
  Graph graph = small_graph();
  const TensorMap first = initial_tensors(graph, 1);
  std::swap(graph.parameters.front(), graph.parameters.back());
  graph.parameters.push_back({"another", {100}, {Initializer::Kind::normal, 1}});
  EXPECT_EQ(initial_tensors(graph, 1).at("conv.weight").values, first.at("conv.weight").values);
  EXPECT_NE(initial_tensors(graph, 2).at("conv.weight").values, first.at("conv.weight").values);
}

TEST(InitialTensors, ConvolutionsOfResNet50HaveTheirDeviation) {
  const Graph graph = make_resnet50({});
  const TensorMap tensors = initial_tensors(graph, 5);
  for (const Parameter& parameter : graph.parameters) {
    if (parameter.dims.size() != 4) continue;
    double squares = 0;
    for (float value : tensors.at(parameter.name).values) squares += double{value} * value;
    const auto count = static_cast<double>(parameter.elements());
    const double deviation = std::sqrt(squares / count) / parameter.initializer.number;
    EXPECT_NEAR(deviation, 1, 5 / std::sqrt(2 * count)) << parameter.name;  // five standard errors
  }
}

TEST(TensorsFor, TakesWhatTheGraphWantsAndIgnoresBatchCounters) {
  const Graph graph = small_graph();
  TensorFile file{initial_tensors(graph, 1), {}};
  file.integers["bn.num_batches_tracked"] = {{}, {77}};
  const TensorMap tensors = tensors_for(graph, file, "f");
  EXPECT_EQ(tensors.size(), 5U);
  EXPECT_EQ(tensors.at("fc.weight").values, file.floats.at("fc.weight").values);
}

TEST(TensorsFor, NamesTheTensorOfAnotherShapeWithWantedAndFound) {
  const Graph graph = small_graph();
  TensorFile file{initial_tensors(graph, 1), {}};
  file.floats["fc.weight"] = {{1000, 4}, std::vector<float>(4000)};
  const std::string message = refusal(graph, file);
  for (const char* part : {"some/file.safetensors", "\"fc.weight\"", "[1000, 4]", "[10, 4]"}) {
    EXPECT_TRUE(mentions(message, part)) << part << " in: " << message;
  }
}

TEST(TensorsFor, RefusesTheRightElementsInTheWrongDims) {
  const Graph graph = small_graph();
  TensorFile file{initial_tensors(graph, 1), {}};
  file.floats["fc.weight"].dims = {4, 10};
  EXPECT_TRUE(mentions(refusal(graph, file), "[4, 10]"));
}

TEST(TensorsFor, NamesTheMissingTensor) {
  const Graph graph = small_graph();
  TensorFile file{initial_tensors(graph, 1), {}};
  file.floats.erase("bn.running_var");
  EXPECT_TRUE(mentions(refusal(graph, file), "\"bn.running_var\" of shape [4] is missing"));
}

TEST(TensorsFor, NamesTheUnknownTensor) {
  const Graph graph = small_graph();
  TensorFile file{initial_tensors(graph, 1), {}};
  file.floats["layer9.weight"] = {{1}, {0}};
  EXPECT_TRUE(mentions(refusal(graph, file), "\"layer9.weight\" is unknown"));
}

TEST(TensorsFor, RefusesIntegersWhereFloatsAreWanted) {
  const Graph graph = small_graph();
  TensorFile file{initial_tensors(graph, 1), {}};
  file.floats.erase("bn.weight");
  file.integers["bn.weight"] = {{4}, {1, 1, 1, 1}};
  EXPECT_TRUE(mentions(refusal(graph, file), "\"bn.weight\" holds I64"));
}

}  // namespace
}  // namespace plumb
