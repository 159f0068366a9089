// Trains the class centers of a margin loss on fixed features, on one CPU device.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device.h"
#include "models/graph.h"

namespace plumb {

struct MarginSetup {
  int ranks = 1;
  std::int64_t images = 4;  // per rank
  std::int64_t embedding = 8, classes = 10;
  Head head = Head::sharded;
  Margins margins;
  double scale = 64;
  MarginLoss::Gradient gradient = MarginLoss::Gradient::exact;
  double sample_rate = 1;
  UpdateRule rule = {Optimizer::sgd, 0.9, 5e-4};
  float learning_rate = 0.01f;
  int iterations = 1;  // all on the same batch
  int threads = 0;     // 0: the device decides
};

struct MarginTensors {
  std::vector<float> features;       // [images, embedding]
  std::vector<float> centers;        // [classes, embedding]
  std::vector<std::int64_t> labels;  // [images]
};

// Gradients are those of the last iteration.
struct MarginRun {
  std::vector<double> losses;                      // per iteration, mean over all images
  std::vector<int> top1;                           // per iteration
  std::vector<float> feature_gradient;             // [images, embedding]
  std::vector<float> centre_gradient;              // [classes, embedding]
  std::vector<float> centers;                      // after the last update
  std::vector<std::vector<std::int32_t>> samples;  // per iteration: sampled rows, padded with -1
};

// One rank's Graph: the images are the features, and the only operation is the loss.
Graph margin_graph(const MarginSetup& setup, int rank);
// Of a setup with one rank.
MarginRun run_margin(const MarginSetup& setup, const MarginTensors& tensors);

// Uniform in [-1, 1), and labels from all classes; both depend only on `seed`.
MarginTensors random_margin_tensors(const MarginSetup& setup, std::uint32_t seed);

}  // namespace plumb
