// One batch on the host, the same at every step: made up, or from a file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/data/batch_source.h"

namespace plumb {

class FixedBatch : public BatchSource {
 public:
  FixedBatch(std::string description, std::vector<float> images, std::vector<std::int64_t> labels)
      : description_(std::move(description)), images_(std::move(images)), labels_(std::move(labels)) {}

  Batch next() override { return {images_, labels_}; }
  bool always_the_same() const override { return true; }
  double waited_seconds() const override { return 0; }
  std::size_t host_bytes() const override {
    return images_.size() * sizeof(float) + labels_.size() * sizeof(std::int64_t);
  }
  std::string description() const override { return description_; }

 private:
  std::string description_;
  std::vector<float> images_;
  std::vector<std::int64_t> labels_;
};

// Pixels are standard normal (what normalised photographs have as mean and deviation), labels uniform over
// the classes; both are functions of (seed, rank, position) alone, so ranks train on different data.
FixedBatch synthetic_batch(const BatchSourceOptions& options);

// A safetensors file, for every rank the same: `images` [n, 3, image_size, image_size] fp32, already
// normalised, and `labels` [n] int64; the first batch_per_device rows are taken. Throws Error(bad_data): a
// tensor missing, of another shape (which, wanted, found), too few rows, a label outside the classes.
FixedBatch batch_of_file(const BatchSourceOptions& options);

}  // namespace plumb
