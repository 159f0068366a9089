// Made-up data: one batch per rank, the same at every step.
#pragma once

#include <vector>

#include "bench/data/batch_source.h"

namespace plumb {

// Pixels are standard normal (what normalised photographs have as mean and deviation), labels uniform over
// the classes; both are functions of (seed, rank, position) alone, so ranks train on different data.
class SyntheticSource : public BatchSource {
 public:
  explicit SyntheticSource(const BatchSourceOptions& options);

  Batch next() override { return {images_, labels_}; }
  bool always_the_same() const override { return true; }
  double waited_seconds() const override { return 0; }
  std::size_t host_bytes() const override {
    return images_.size() * sizeof(float) + labels_.size() * sizeof(std::int64_t);
  }
  std::string description() const override { return "synthetic images and labels"; }

 private:
  std::vector<float> images_;
  std::vector<std::int64_t> labels_;
};

}  // namespace plumb
