// Trains a Graph for a few iterations like the programs, through bench/run/runner.h, on the emulated GPU or
// on the CPU device.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "kernels/program/describe.h"
#include "models/graph.h"
#include "tests/kernels/graph_builder.h"
#include "tests/kernels/run_graph.h"

namespace plumb {

struct TrainOptions {
  Precision precision = Precision::fp32;
  bool fuse = true;
  bool deterministic = false;
  bool fp32_head = false;
  std::vector<PlainLayer> plain;
  int compute_capability = 90;  // target of the Program
  UpdateRule rule;
  float learning_rate = 0.02F;
  int iterations = 1;
  bool capture = false;        // all iterations after the first are replays
  bool other_batches = false;  // a new batch each iteration, loaded during the previous one
  int stamped_iterations = 0;  // number of leading iterations that stamp every instruction
};

inline constexpr UpdateRule kTestedRule{.momentum = 0.875, .weight_decay = 0.01};
// With that rule, in fp16 with a fixed loss scale.
TrainOptions half_steps(Precision precision, int iterations);
// Every operation without these patterns, for TrainOptions::plain.
std::vector<PlainLayer> without(const Graph& graph, const std::vector<FusedPattern>& patterns);

// GraphRun::first_gradients stays empty: nothing waits for the device before the last iteration is enqueued.
// Gradients are divided by the loss scale.
GraphRun train_on_gpu(const Graph& graph, const TestTensors& tensors, const TrainOptions& options);
// fp32, whatever precision the options have.
GraphRun train_on_cpu(const Graph& graph, const TestTensors& tensors, const TrainOptions& options);

// |difference| / |truth|, both as one vector; 0 if both are 0.
double relative_error(const std::vector<float>& values, const std::vector<float>& truth);
double cosine(const std::vector<float>& a, const std::vector<float>& b);

// How far losses are from `truth`, relatively, and by relative_error() gradients, parameters and statistics.
struct Difference {
  std::string of;
  double error = 0;
};
std::vector<Difference> differences(const Graph& graph, const GraphRun& run, const GraphRun& truth);
// Every difference is within `tolerance`.
void expect_same_training(const Graph& graph, const GraphRun& run, const GraphRun& truth, double tolerance);
// Bit for bit, including losses.
void expect_identical(const GraphRun& run, const GraphRun& other);

}  // namespace plumb
