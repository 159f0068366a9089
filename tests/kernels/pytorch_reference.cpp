#include "tests/kernels/pytorch_reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <stdexcept>

#include "models/arcface.h"
#include "models/resnet50.h"

namespace plumb {
namespace {

nlohmann::json read_document(const std::string& file) {
  std::ifstream stream(PLUMB_TEST_DATA "/" + file);
  return nlohmann::json::parse(stream);
}

Graph graph_of(const nlohmann::json& expected, const nlohmann::json& document) {
  if (!expected.contains("model"))
    return make_resnet50({.batch = expected.at("batch"),
                          .image_size = expected.at("image_size"),
                          .label_smoothing = document.at("label_smoothing")});
  const std::vector<double> margins = expected.at("margins");
  return make_arcface({.backbone = expected.at("model") == "y1" ? kMobileFaceNet : kIResNet50,
                       .batch = expected.at("batch"),
                       .image_size = expected.at("image_size"),
                       .embedding = expected.at("embedding"),
                       .dropout = 0,
                       .classes = expected.at("classes"),
                       .margins = {margins.at(0), margins.at(1), margins.at(2)}});
}

double norm(const std::vector<float>& values) {
  double squares = 0;
  for (double value : values) squares += value * value;
  return std::sqrt(squares);
}

double relative_error(double value, double truth) {
  return std::abs(value - truth) / std::abs(truth);
}

// Norms of fp32 gradients against fp64. Allowed: five times the distance |fp32 - fp64| / |fp64| of PyTorch's
// own fp32 gradient of that tensor, or of typical tensors (1e-4), because another summation order may flip
// other ReLUs. Only some biases may be further off: a norm cancels their effect, so only rounding is left.
void expect_gradient_norms(const Graph& graph, const GraphRun& run, const nlohmann::json& expected) {
  constexpr double kUsualDistance = 1e-4, kLargestDistance = 2e-4;
  const std::vector<std::string> names = expected.at("gradient_names");
  const std::vector<double> truth = expected.at("gradient_norms_fp64");
  const std::vector<double> distances = expected.at("gradient_distances_fp32");
  const double floor = 1e-6 * *std::max_element(truth.begin(), truth.end());
  std::size_t compared = 0;
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    if (!graph.parameters[p].trained) continue;
    ASSERT_LT(compared, names.size());
    ASSERT_EQ(graph.parameters[p].name, names[compared]);
    if (!names[compared].ends_with(".bias")) {
      ASSERT_LE(distances[compared], kLargestDistance) << names[compared];
    }
    const double allowed = 5 * std::max(distances[compared], kUsualDistance);
    EXPECT_NEAR(norm(run.first_gradients[p]), truth[compared], allowed * std::max(truth[compared], floor))
        << names[compared];
    ++compared;
  }
  EXPECT_EQ(compared, names.size());
}

// Running means and variances depend on the parameters of all steps; PyTorch's fp32 norms are within 2e-5 of
// fp64.
void expect_statistics(const Graph& graph, const GraphRun& run, const nlohmann::json& expected) {
  const std::vector<std::string> names = expected.at("statistic_names");
  const std::vector<double> truth = expected.at("statistic_norms_fp64");
  std::map<std::string, double> norms;
  for (std::size_t s = 0; s < graph.statistics.size(); ++s)
    norms[graph.statistics[s].name] = norm(run.statistics[s]);
  ASSERT_EQ(norms.size(), names.size());
  for (std::size_t s = 0; s < names.size(); ++s)
    EXPECT_LE(relative_error(norms.at(names[s]), truth[s]), 2e-4) << names[s];
}

void expect_parameter_norms(const Graph& graph, const GraphRun& run, const nlohmann::json& expected) {
  const std::vector<double> truth = expected.at("parameter_norms_fp64");
  ASSERT_EQ(truth.size(), graph.parameters.size());
  for (std::size_t p = 0; p < truth.size(); ++p)
    EXPECT_LE(relative_error(norm(run.parameters[p]), truth[p]), 1e-4) << graph.parameters[p].name;
}

}  // namespace

PyTorchCase read_pytorch_case(const std::string& file, const std::string& name) {
  const nlohmann::json document = read_document(file);
  for (const nlohmann::json& entry : document.at("cases")) {
    if (entry.at("name") != name) continue;
    return {.expected = entry,
            .graph = graph_of(entry, document),
            .options = {.rule = {.optimizer = Optimizer::sgd,
                                 .momentum = document.at("momentum"),
                                 .weight_decay = document.at("weight_decay")},
                        .learning_rate = entry.at("learning_rate"),
                        .iterations = entry.at("steps")}};
  }
  throw std::runtime_error(file + " has no case " + name);
}

void expect_pytorchs_losses(const PyTorchCase& reference, const GraphRun& run, double first, double later) {
  const std::vector<double> truth = reference.expected.at("losses_fp64");
  ASSERT_EQ(run.losses.size(), static_cast<std::size_t>(reference.options.iterations));
  for (std::size_t i = 0; i < run.losses.size(); ++i)
    EXPECT_LE(relative_error(run.losses[i], truth.at(i)), i == 0 ? first : later)
        << "step " << i << ": " << run.losses[i] << " instead of " << truth[i];
}

void expect_pytorchs_training(const PyTorchCase& reference, const GraphRun& run) {
  expect_pytorchs_losses(reference, run, 1e-4, 5e-4);
  expect_gradient_norms(reference.graph, run, reference.expected);
  expect_statistics(reference.graph, run, reference.expected);
  expect_parameter_norms(reference.graph, run, reference.expected);
}

}  // namespace plumb
