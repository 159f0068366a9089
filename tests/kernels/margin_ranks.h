// Trains the class centers of a margin loss on fixed features, over several ranks in one process. Each rank
// has its own CPU device and Program; instructions run in lockstep, and collectives are done by hand.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device.h"
#include "models/graph.h"

namespace plumb {

struct MarginRanks {
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
  std::vector<float> features;       // [ranks * images, embedding]
  std::vector<float> centers;        // [classes, embedding]
  std::vector<std::int64_t> labels;  // [ranks * images]
};

// Gradients belong to the mean over all images, in the last iteration.
struct MarginRun {
  std::vector<double> losses;           // per iteration, mean over all images
  std::vector<int> top1;                // per iteration, over all ranks' images
  std::vector<float> feature_gradient;  // [ranks * images, embedding]
  std::vector<float> centre_gradient;   // [classes, embedding]
  std::vector<float> centers;           // after the last update
  // Per iteration and rank: the rank's sampled rows as on the device, padded with -1.
  std::vector<std::vector<std::vector<std::int32_t>>> samples;
};

// One rank's Graph: the images are the features, and the only operation is the loss.
Graph margin_graph(const MarginRanks& setup, int rank);
MarginRun run_margin_ranks(const MarginRanks& setup, const MarginTensors& tensors);

// Uniform in [-1, 1), and labels from all classes; both depend only on `seed`.
MarginTensors random_margin_tensors(const MarginRanks& setup, std::uint32_t seed);

}  // namespace plumb
