// A margin head on several ranks at once: each has its own Program and memory on the emulated GPU;
// collectives are loops over the ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/program.h"
#include "models/graph.h"

namespace plumb::cuda {

struct HeadCase {
  std::int64_t images = 4;  // per rank
  std::int64_t embedding = 8, classes = 10;
  int ranks = 1;
  Head head = Head::sharded;
  double sample_rate = 1;
  DType rows_dtype = DType::f32;  // of class centres and their gradient
  Margins margins = {1, 0.5, 0};
  double scale = 64;
  MarginLoss::Gradient gradient = MarginLoss::Gradient::exact;
  float loss_scale = 1;
  std::uint64_t iteration = 0;
};

struct HeadInput {
  std::vector<double> features;  // [ranks * images, embedding]
  std::vector<double> centres;   // [classes, embedding]
  std::vector<std::int64_t> labels;
};

// Gradients as the ranks' updates see them: summed over ranks, divided by their number, loss scale removed.
// They belong to the mean loss over all images.
struct HeadAnswer {
  double loss = 0;
  int top1 = 0;
  std::vector<double> feature_gradient, centre_gradient;
  std::vector<std::int64_t> sample;  // the participating classes
};
HeadAnswer run_head(const HeadCase& by, const HeadInput& input);

}  // namespace plumb::cuda
