// Trains the class centres of a margin loss on fixed features, over several ranks that live in one process:
// each has a CPU device and a Program of its own, instructions run side by side, and collectives are done by
// hand.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device.h"
#include "models/graph.h"

namespace plumb {

struct MarginRanks {
  int ranks = 1;
  std::int64_t images = 4;  // of each rank
  std::int64_t embedding = 8, classes = 10;
  Head head = Head::sharded;
  Margins margins;
  double scale = 64;
  MarginLoss::Gradient gradient = MarginLoss::Gradient::exact;
  double sample_rate = 1;
  UpdateRule rule = {Optimizer::sgd, 0.9, 5e-4};
  float learning_rate = 0.01f;
  int iterations = 1;  // all on the same batch
  int threads = 0;     // 0: as the device chooses
};

struct MarginTensors {
  std::vector<float> features;       // [ranks * images, embedding]
  std::vector<float> centres;        // [classes, embedding]
  std::vector<std::int64_t> labels;  // [ranks * images]
};

// Gradients are those of the mean over all images, in the last iteration.
struct MarginRun {
  std::vector<double> losses;           // by iteration, mean over all images
  std::vector<int> top1;                // by iteration, images of all ranks
  std::vector<float> feature_gradient;  // [ranks * images, embedding]
  std::vector<float> centre_gradient;   // [classes, embedding]
  std::vector<float> centres;           // after the last update
  // By iteration and rank: the rank's rows that were sampled, as the device has them: -1 behind the last.
  std::vector<std::vector<std::vector<std::int32_t>>> samples;
};

// The Graph of one rank: the images are the features, and the loss is all there is.
Graph margin_graph(const MarginRanks& setup, int rank);
MarginRun run_margin_ranks(const MarginRanks& setup, const MarginTensors& tensors);

// Evenly drawn from [-1, 1), and labels from all classes; they depend on `seed` alone.
MarginTensors random_margin_tensors(const MarginRanks& setup, std::uint32_t seed);

}  // namespace plumb
