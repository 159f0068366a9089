// Margin losses and their gradients in double precision, by the definition and nothing else: what devices and
// heads are compared with.
#pragma once

#include <cstdint>
#include <vector>

#include "models/graph.h"

namespace plumb {

struct MarginProblem {
  std::int64_t images = 0, embedding = 0, classes = 0;
  std::vector<double> features;      // [images, embedding]
  std::vector<double> centres;       // [classes, embedding]
  std::vector<std::int64_t> labels;  // [images]
  Margins margins;
  double scale = 64;
  MarginLoss::Gradient gradient = MarginLoss::Gradient::exact;
  // The classes that take part in the softmax, each once, every label among them; empty: all.
  std::vector<std::int64_t> sample = {};
};

struct MarginAnswer {
  double loss = 0;                       // mean over the images
  std::vector<double> image_losses;      // [images]
  std::vector<double> feature_gradient;  // of the mean, [images, embedding]
  std::vector<double> centre_gradient;   // [classes, embedding]; 0 for classes that take no part
};

// Throws std::invalid_argument if the sizes don't fit or a label takes no part.
MarginAnswer margin_reference(const MarginProblem& problem);

}  // namespace plumb
