// Margin losses and their gradients in double precision, straight from the definition: the reference for
// devices and heads.
#pragma once

#include <cstdint>
#include <vector>

#include "models/graph.h"

namespace plumb {

struct MarginProblem {
  std::int64_t images = 0, embedding = 0, classes = 0;
  std::vector<double> features;      // [images, embedding]
  std::vector<double> centers;       // [classes, embedding]
  std::vector<std::int64_t> labels;  // [images]
  Margins margins;
  double scale = 64;
  MarginLoss::Gradient gradient = MarginLoss::Gradient::exact;
  // Classes in the softmax, each once, every label included; empty: all.
  std::vector<std::int64_t> sample = {};
};

struct MarginAnswer {
  double loss = 0;                       // mean over the images
  std::vector<double> image_losses;      // [images]
  std::vector<double> feature_gradient;  // of the mean, [images, embedding]
  std::vector<double> centre_gradient;   // [classes, embedding]; 0 for classes left out
};

// Throws std::invalid_argument if sizes don't match or a label is left out.
MarginAnswer margin_reference(const MarginProblem& problem);

}  // namespace plumb
