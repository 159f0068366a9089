// PyTorch's results of a training run, and the same run here: data/*_pytorch.json, made by the scripts in
// tests/reference from the same closed-form weights and images.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "models/graph.h"
#include "tests/kernels/run_graph.h"

namespace plumb {

struct PyTorchCase {
  nlohmann::json expected;  // the case's entry
  Graph graph;
  GraphRunOptions options;
};
// `file`: "resnet50_pytorch.json".
PyTorchCase read_pytorch_case(const std::string& file, const std::string& name);

// Losses of the run's steps within these relative distances of fp64: at step 0, and after it.
void expect_pytorchs_losses(const PyTorchCase& reference, const GraphRun& run, double first, double later);
// Losses within 1e-4 and 5e-4; norms of gradients, statistics and parameters.
void expect_pytorchs_training(const PyTorchCase& reference, const GraphRun& run);

}  // namespace plumb
