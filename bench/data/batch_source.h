// Where a rank's images and labels come from: one ready batch per step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/data/augment.h"

namespace plumb {

// Images of a batch for all steps: [count, 3, image_size, image_size] fp32, normalized, row-major. labels:
// [count], each in [0, classes).
struct Batch {
  std::span<const float> images;
  std::span<const std::int64_t> labels;
};

// A step's batch. pixels: [batch_per_device, image_size, image_size, 3], red, green, blue; the device
// normalizes them. labels: likewise.
struct PixelBatch {
  std::span<const std::uint8_t> pixels;
  std::span<const std::int32_t> labels;
};

// Images that couldn't be read or decoded, as far as this rank has met them.
struct CorruptFiles {
  std::int64_t count = 0;
  std::vector<std::string> first;  // "where (reason)" of the first ones, kCorruptFilesNamed at most
};
inline constexpr std::size_t kCorruptFilesNamed = 3;

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  using WritePart = std::function<void(std::int64_t first_image, const Batch& part)>;
  // Calls `write` with each part of the batch that all steps train on; never, if every step has its own
  // batch.
  virtual void write_lasting(const WritePart& /*write*/) const {}
  // The following batch, endlessly. It is valid until the third call after this one: a GPU copies it later
  // (Device::stage_batch). Throws Error(bad_data) when too many images are corrupt.
  virtual PixelBatch next() { throw std::logic_error("every step has the same batch"); }
  // Seconds that calls of next() have spent waiting for data so far, all together.
  virtual double waited_seconds() const { return 0; }
  virtual CorruptFiles corrupt_files() const { return {}; }
  // What has to be the same on every rank, as Job::require_same takes it.
  virtual std::string fingerprint() const { return {}; }
  // Memory that it holds on the host for as long as it lives.
  virtual std::size_t host_bytes() const = 0;
  // One line for people, e.g. "1280 images in 10 classes from photos, 2 workers".
  virtual std::string description() const = 0;
};

struct BatchSourceOptions {
  std::string data = "synthetic";  // "synthetic", an image folder or a RecordIO file
  std::string batch_file;          // a safetensors file that replaces `data` if it isn't empty
  std::int64_t batch_per_device = 1;
  std::int64_t image_size = 224;
  std::int64_t classes = 1000;                            // at most 2^31 - 1
  Preprocessing preprocessing = Preprocessing::imagenet;  // of images; batch files are normalized already
  std::uint64_t seed = 0;
  int rank = 0, world_size = 1;
  int workers = 1;  // threads that decode images ahead, at least 1
  // Memory for batches: page-locked for a GPU.
  std::function<std::shared_ptr<std::byte>(std::size_t bytes)> allocate = [](std::size_t bytes) {
    return std::shared_ptr<std::byte>(new std::byte[bytes], std::default_delete<std::byte[]>());
  };
};

// Reads and checks what can be checked before the first step. Throws Error(bad_data) with the file or folder.
//
// Synthetic pixels are standard normal and labels uniform over the classes; both depend on seed, rank and
// position alone. Every rank reads the same batch file: `images` [n, 3, image_size, image_size] fp32,
// already normalized, and `labels` [n] int64; the first batch_per_device rows are used.
std::unique_ptr<BatchSource> make_batch_source(const BatchSourceOptions& options);

}  // namespace plumb
