// Whole training steps of ResNet-50 on the CPU device against PyTorch. Expected values:
// data/resnet50_pytorch.json, made by tests/reference/make_resnet50.py from the same closed-form weights and
// images.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

#include "models/resnet50.h"
#include "tests/kernels/closed_form.h"
#include "tests/kernels/run_graph.h"

namespace plumb {
namespace {

nlohmann::json read_expected() {
  std::ifstream file(PLUMB_TEST_DATA "/resnet50_pytorch.json");
  return nlohmann::json::parse(file);
}

nlohmann::json expected_case(const nlohmann::json& document, const std::string& name) {
  for (const auto& entry : document.at("cases"))
    if (entry.at("name") == name) return entry;
  throw std::runtime_error("resnet50_pytorch.json has no case " + name);
}

double sum(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double norm(const std::vector<float>& values) {
  double squares = 0;
  for (double value : values) squares += value * value;
  return std::sqrt(squares);
}

double relative_error(double value, double truth) {
  return std::abs(value - truth) / std::abs(truth);
}

Graph graph_of(const nlohmann::json& expected, const nlohmann::json& document) {
  return make_resnet50({.batch = expected.at("batch"),
                        .image_size = expected.at("image_size"),
                        .label_smoothing = document.at("label_smoothing")});
}

GraphRun train(const Graph& graph, const nlohmann::json& expected, const nlohmann::json& document) {
  const UpdateRule rule{Optimizer::sgd, document.at("momentum"), document.at("weight_decay")};
  return run_on_cpu(
      graph, closed_form_tensors(graph),
      {.rule = rule, .learning_rate = expected.at("learning_rate"), .iterations = expected.at("steps")});
}

void expect_losses(const GraphRun& run, const nlohmann::json& expected) {
  const std::vector<double> truth = expected.at("losses_fp64");
  ASSERT_EQ(run.losses.size(), truth.size());
  for (std::size_t i = 0; i < truth.size(); ++i)
    EXPECT_LE(relative_error(run.losses[i], truth[i]), i == 0 ? 1e-4 : 5e-4)
        << "step " << i << ": " << run.losses[i] << " instead of " << truth[i];
}

// Norms of fp32 gradients against fp64: allowed is five times the worst distance |fp32 - fp64| / |fp64| that
// any of PyTorch's own fp32 gradients has in this case (5e-5 to 1e-4), as another order of sums may flip
// other ReLUs.
void expect_gradient_norms(const Graph& graph, const GraphRun& run, const nlohmann::json& expected) {
  const std::vector<std::string> names = expected.at("gradient_names");
  const std::vector<double> truth = expected.at("gradient_norms_fp64");
  const std::vector<double> distances = expected.at("gradient_distances_fp32");
  const double tolerance = 5 * *std::max_element(distances.begin(), distances.end());
  ASSERT_LT(tolerance, 1e-3);
  ASSERT_EQ(names.size(), graph.parameters.size());
  for (std::size_t p = 0; p < names.size(); ++p) {
    ASSERT_EQ(graph.parameters[p].name, names[p]);
    EXPECT_LE(relative_error(norm(run.first_gradients[p]), truth[p]), tolerance) << names[p];
  }
}

// Running means and variances have seen all steps' parameters; PyTorch's fp32 norms are within 2e-5 of fp64.
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
  for (std::size_t p = 0; p < truth.size(); ++p)
    EXPECT_LE(relative_error(norm(run.parameters[p]), truth[p]), 1e-4) << graph.parameters[p].name;
}

void expect_pytorchs_training(const std::string& name) {
  const nlohmann::json document = read_expected(), expected = expected_case(document, name);
  const Graph graph = graph_of(expected, document);
  const GraphRun run = train(graph, expected, document);
  expect_losses(run, expected);
  expect_gradient_norms(graph, run, expected);
  expect_statistics(graph, run, expected);
  expect_parameter_norms(graph, run, expected);
}

TEST(PyTorchParity, BothSidesStartFromTheSameTensors) {
  const nlohmann::json document = read_expected(), expected = expected_case(document, "bs4_64px");
  const TestTensors tensors = closed_form_tensors(graph_of(expected, document));
  double parameters = 0;
  for (const auto& parameter : tensors.parameters) parameters += sum(parameter);
  // Sums of fp32 values that agree to the last bit, added in another order.
  EXPECT_NEAR(parameters, document.at("parameters_sum").get<double>(), 1e-5);
  EXPECT_NEAR(sum(tensors.images), expected.at("images_sum").get<double>(), 1e-3);
}

TEST(PyTorchParity, FourStepsOfSmallImagesMatch) {
  expect_pytorchs_training("bs4_64px");
}

TEST(PyTorchParity, FourStepsOf224PixelsMatch) {
  expect_pytorchs_training("bs2_224px");
}

}  // namespace
}  // namespace plumb
