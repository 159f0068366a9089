#include "bench/data/batch_source.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "bench/data/image_loader.h"
#include "models/weights.h"

namespace plumb {
namespace {

// Made in parts of at most kMostElements, or one image.
class SyntheticBatch : public BatchSource {
 public:
  explicit SyntheticBatch(const BatchSourceOptions& options) : options_(options) {}

  void write_lasting(const WritePart& write) const override {
    const PhiloxKey image_key = key_of("images"), label_key = key_of("labels");
    const auto classes = static_cast<std::uint64_t>(options_.classes);
    std::vector<float> images;
    std::vector<std::int64_t> labels;
    for (std::int64_t first = 0; first < options_.batch_per_device; first += images_at_once()) {
      const std::int64_t count = std::min(images_at_once(), options_.batch_per_device - first);
      images.resize(static_cast<std::size_t>(count * image_elements()));
      fill_together(images, [&](std::span<float> part, std::size_t at) {
        fill_normal(image_key, 0, 1, part, static_cast<std::uint64_t>(first * image_elements()) + at);
      });
      labels.resize(static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < labels.size(); ++i) {  // bias of the product: under classes / 2^32
        const std::uint64_t bits = random_block(label_key, static_cast<std::uint64_t>(first) + i)[0];
        labels[i] = static_cast<std::int64_t>((bits * classes) >> 32);
      }
      write(first, {images, labels});
    }
  }
  std::size_t host_bytes() const override {
    return static_cast<std::size_t>(images_at_once() * image_elements()) * sizeof(float);
  }
  std::string description() const override { return "synthetic images and labels"; }

 private:
  static constexpr std::int64_t kMostElements = std::int64_t{1} << 23;  // at once: 32 MiB

  PhiloxKey key_of(const char* content) const {
    return stream_key(options_.seed, fmt::format("synthetic {} of rank {}", content, options_.rank));
  }
  std::int64_t image_elements() const { return 3 * options_.image_size * options_.image_size; }
  std::int64_t images_at_once() const {
    return std::clamp<std::int64_t>(kMostElements / image_elements(), 1, options_.batch_per_device);
  }

  BatchSourceOptions options_;
};

// One batch on the host, the same at every step.
class FixedBatch : public BatchSource {
 public:
  FixedBatch(std::string description, std::vector<float> images, std::vector<std::int64_t> labels)
      : description_(std::move(description)), images_(std::move(images)), labels_(std::move(labels)) {}

  void write_lasting(const WritePart& write) const override { write(0, {images_, labels_}); }
  std::size_t host_bytes() const override {
    return images_.size() * sizeof(float) + labels_.size() * sizeof(std::int64_t);
  }
  std::string description() const override { return description_; }

 private:
  std::string description_;
  std::vector<float> images_;
  std::vector<std::int64_t> labels_;
};

using Dims = std::vector<std::int64_t>;

template <typename... Values>
[[noreturn]] void refuse(const std::string& path, fmt::format_string<Values...> what, Values&&... values) {
  throw Error(ExitCode::bad_data, "--batch-file {}: {}", path,
              fmt::format(what, std::forward<Values>(values)...));
}

[[noreturn]] void refuse_missing(const std::string& path, const char* tensor) {
  refuse(path, "expected {}; use images [n, 3, H, W] fp32 and labels [n] int64", tensor);
}

// The tensor's shape but for the number of rows is `row`.
void check_shape(const std::string& path, const std::string& name, const Dims& found, const Dims& row,
                 std::int64_t rows_wanted) {
  const bool same_row =
      found.size() == row.size() + 1 && std::equal(row.begin(), row.end(), found.begin() + 1);
  if (!same_row) {
    Dims wanted{rows_wanted};
    wanted.insert(wanted.end(), row.begin(), row.end());
    refuse(path,
           "tensor \"{}\": expected shape [{}] or more rows, found [{}]; use a file for this --image-size",
           name, fmt::join(wanted, ", "), fmt::join(found, ", "));
  }
  if (found.front() < rows_wanted)
    refuse(path,
           "tensor \"{}\" has {} rows, fewer than --bs {}; pass a smaller --bs or use a file with more rows",
           name, found.front(), rows_wanted);
}

std::unique_ptr<BatchSource> batch_of_file(const BatchSourceOptions& options) {
  const std::string& path = options.batch_file;
  const TensorFile file = read_safetensors(path, "--batch-file");
  const auto images = file.floats.find("images");
  if (images == file.floats.end()) refuse_missing(path, "fp32 tensor \"images\"");
  const auto labels = file.integers.find("labels");
  if (labels == file.integers.end()) refuse_missing(path, "int64 tensor \"labels\"");
  const std::int64_t size = options.image_size, batch = options.batch_per_device;
  check_shape(path, "images", images->second.dims, {3, size, size}, batch);
  check_shape(path, "labels", labels->second.dims, {}, batch);

  const auto pixels = images->second.values.begin();
  const auto first_label = labels->second.values.begin();
  const auto is_outside = [&](std::int64_t label) { return label < 0 || label >= options.classes; };
  const auto outside = std::find_if(first_label, first_label + batch, is_outside);
  if (outside != first_label + batch)
    refuse(path,
           "label {} in row {} is outside 0 to {}; use smaller labels or, for faces, pass more --classes",
           *outside, outside - first_label, options.classes - 1);
  return std::make_unique<FixedBatch>("the same batch at every step, from " + path,
                                      std::vector<float>(pixels, pixels + batch * 3 * size * size),
                                      std::vector<std::int64_t>(first_label, first_label + batch));
}

}  // namespace

std::unique_ptr<BatchSource> make_batch_source(const BatchSourceOptions& options) {
  if (!options.batch_file.empty()) return batch_of_file(options);
  if (options.data == "synthetic") return std::make_unique<SyntheticBatch>(options);
  return std::make_unique<ImageLoader>(options);
}

}  // namespace plumb
