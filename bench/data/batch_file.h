// A batch from a safetensors file: the same images and labels on every rank and at every step.
#pragma once

#include <vector>

#include "bench/data/batch_source.h"

namespace plumb {

// `images` [n, 3, image_size, image_size] fp32, already normalised, and `labels` [n] int64; the first
// batch_per_device rows are taken. Throws Error(bad_data): a tensor missing, of another shape (which, wanted,
// found), too few rows, a label outside the classes.
class BatchFileSource : public BatchSource {
 public:
  explicit BatchFileSource(const BatchSourceOptions& options);

  Batch next() override { return {images_, labels_}; }
  bool always_the_same() const override { return true; }
  double waited_seconds() const override { return 0; }
  std::size_t host_bytes() const override {
    return images_.size() * sizeof(float) + labels_.size() * sizeof(std::int64_t);
  }
  std::string description() const override { return description_; }

 private:
  std::vector<float> images_;
  std::vector<std::int64_t> labels_;
  std::string description_;
};

}  // namespace plumb
