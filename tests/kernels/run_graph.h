// Trains a Graph on the CPU device for a few iterations and returns everything a test may check.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device.h"
#include "models/graph.h"
#include "tests/kernels/graph_builder.h"

namespace plumb {

struct GraphRunOptions {
  DescribeOptions describe;
  UpdateRule rule;
  float learning_rate = 0.1f;
  int iterations = 1;  // all on the same batch
  int threads = 0;     // 0: the device decides
  std::uint64_t first_sample = 0;
};

// One vector per Graph::parameters or Graph::statistics, in the public dims; empty gradients for untrained
// parameters.
struct GraphRun {
  std::vector<IterationMetrics> metrics;                       // one per iteration
  std::vector<double> losses;                                  // from `metrics`
  std::vector<std::vector<float>> first_gradients, gradients;  // the first and the last iteration's
  std::vector<std::vector<float>> parameters, statistics;      // after the last update
};

// Parameters, class centers in two pieces, and statistics.
void write_tensors(Device& device, const Graph& graph, const TestTensors& tensors);
// Gradients, parameters and statistics.
void read_tensors(const Device& device, const Graph& graph, GraphRun& run);

// describe -> prepare -> plan -> bind, then every instruction's callable in order. One rank, so no
// collectives.
GraphRun run_on_cpu(const Graph& graph, const TestTensors& tensors, const GraphRunOptions& options);

}  // namespace plumb
