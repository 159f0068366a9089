#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "models/arcface.h"
#include "models/resnet50.h"
#include "tests/bench/expect_error.h"
#include "tests/models/initial_tensors.h"

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

// y1 with 11 classes on 3 ranks, or all of them on one.
Graph faces(Head head, int rank, std::int64_t embedding = 8) {
  ModelOptions options;
  options.backbone = kMobileFaceNet;
  options.image_size = 32;
  options.embedding = embedding;
  options.classes = 11;
  options.head = head;
  options.rank = rank;
  options.world_size = 3;
  return make_arcface(options);
}

std::vector<float> rows_of_all_ranks(TensorMap (*tensors)(const Graph&, const TensorMap&),
                                     std::int64_t embedding, const TensorMap& whole) {
  std::vector<float> rows;
  for (int rank = 0; rank < 3; ++rank) {
    const Graph graph = faces(Head::sharded, rank, embedding);
    const Tensor own = tensors(graph, whole).at("head.weight");
    EXPECT_EQ(own.dims, graph.parameters.back().dims);
    rows.insert(rows.end(), own.values.begin(), own.values.end());
  }
  return rows;
}

TEST(InitialTensors, RowsOfAllRanksAreThoseOfTheWholeTensor) {
  for (const std::int64_t embedding : {8, 24, 64}) {
    const TensorMap whole = initial_tensors(faces(Head::replicated, 0, embedding), 1);
    const auto fresh = [](const Graph& graph, const TensorMap&) { return initial_tensors(graph, 1); };
    EXPECT_EQ(rows_of_all_ranks(fresh, embedding, whole), whole.at("head.weight").values) << embedding;
  }
}

// Also where several threads draw, each from an element in the middle of a block of random numbers.
TEST(InitialTensors, PiecesAreThoseOfTheWholeTensor) {
  Parameter parameter{.name = "centers",
                      .dims = {700'001, 7},
                      .initializer = {.kind = Initializer::Kind::normal, .number = 0.01}};
  const std::vector<float> whole = initial_values(parameter, 1);
  std::vector<float> pieces(whole.size());
  for (const auto& [first, rows] : {std::pair<std::int64_t, std::int64_t>{0, 5}, {5, 699'995}, {700'000, 1}})
    draw_rows(
        parameter, 1, first,
        std::span(pieces).subspan(static_cast<std::size_t>(first) * 7, static_cast<std::size_t>(rows) * 7));
  EXPECT_EQ(pieces, whole);
  std::vector<float> alone(whole.size());
  fill_normal(stream_key(1, "centers"), 0, 0.01F, alone);
  EXPECT_EQ(whole, alone);
}

TEST(TensorsFor, EveryRankTakesItsRowsFromTheSameFile) {
  const TensorMap whole = initial_tensors(faces(Head::replicated, 0), 1);
  const auto taken = [](const Graph& graph, const TensorMap& tensors) {
    return tensors_for(graph, {tensors, {}}, "f");
  };
  EXPECT_EQ(rows_of_all_ranks(taken, 8, whole), whole.at("head.weight").values);
}

void expect_refused(const Graph& graph, const std::function<void(TensorFile&)>& damage,
                    const std::vector<std::string>& parts) {
  TensorFile file{initial_tensors(graph.parameters.back().shard ? faces(Head::replicated, 0) : graph, 1), {}};
  damage(file);
  expect_error(ExitCode::bad_data, parts, [&] { tensors_for(graph, file, "some/file.safetensors"); });
}

TEST(TensorsFor, NamesWhatIsWrongWithClassCentres) {
  for (const Head head : {Head::replicated, Head::sharded, Head::sampled})
    expect_refused(faces(head, 0),
                   [](TensorFile& file) {
                     file.floats["head.weight"] = {{4, 8}, std::vector<float>(32)};
                   },  // rank 0's
                   {"\"head.weight\"", "4 classes", "11 are expected", "--classes 4"});
  expect_refused(faces(Head::sharded, 1),
                 [](TensorFile& file) {
                   file.floats["head.weight"] = {{11, 5}, std::vector<float>(55)};
                 },
                 {"expected shape [11, 8], found [11, 5]"});
  expect_refused(faces(Head::sharded, 1), [](TensorFile& file) { file.floats.erase("head.weight"); },
                 {"\"head.weight\": expected it with shape [11, 8]"});
}

TEST(TensorsFor, TakesWhatTheGraphWantsAndIgnoresBatchCounters) {
  const Graph graph = small_graph();
  TensorFile file{initial_tensors(graph, 1), {}};
  file.integers["bn.num_batches_tracked"] = {{}, {77}};
  const TensorMap tensors = tensors_for(graph, file, "f");
  EXPECT_EQ(tensors.size(), 5U);
  EXPECT_EQ(tensors.at("fc.weight").values, file.floats.at("fc.weight").values);
}

TEST(TensorsFor, NamesWhatIsWrongWithOtherTensors) {
  const Graph graph = small_graph();
  expect_refused(graph,
                 [](TensorFile& file) {
                   file.floats["fc.weight"] = {{1000, 4}, std::vector<float>(4000)};
                 },
                 {"some/file.safetensors", "\"fc.weight\"", "[1000, 4]", "[10, 4]"});
  expect_refused(graph, [](TensorFile& file) { file.floats["fc.weight"].dims = {4, 10}; }, {"[4, 10]"});
  expect_refused(graph, [](TensorFile& file) { file.floats.erase("bn.running_var"); },
                 {"\"bn.running_var\": expected it with shape [4]"});
  expect_refused(graph,
                 [](TensorFile& file) {
                   file.floats["layer9.weight"] = {{1}, {0}};
                 },
                 {"\"layer9.weight\": it is unknown"});
  expect_refused(graph,
                 [](TensorFile& file) {
                   file.floats.erase("bn.weight");
                   file.integers["bn.weight"] = {{4}, {1, 1, 1, 1}};
                 },
                 {"\"bn.weight\": expected F32 values, found I64"});
}

TEST(TensorsFor, ValuesThatAreNoNumbersAreRefusedByName) {
  for (const float bad : {std::nanf(""), INFINITY}) {
    expect_refused(small_graph(), [&](TensorFile& file) { file.floats.at("fc.weight").values[17] = bad; },
                   {"tensor \"fc.weight\": element 17 is "});
    expect_refused(small_graph(), [&](TensorFile& file) { file.floats.at("bn.running_var").values[0] = bad; },
                   {"bn.running_var"});
  }
}

}  // namespace
}  // namespace plumb
