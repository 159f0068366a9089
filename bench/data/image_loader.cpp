#include "bench/data/image_loader.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "models/error.h"

namespace plumb {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{1} << 28;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// Throws CorruptImage with the system's reason.
std::span<const std::uint8_t> read_file(const std::filesystem::path& path, std::vector<std::uint8_t>& bytes) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (!file) throw CorruptImage(std::strerror(errno));
  std::size_t size = 0;
  while (size <= kMostFileBytes) {
    if (size == bytes.size()) bytes.resize(std::max<std::size_t>(1 << 18, bytes.size() * 2));
    const std::size_t got = std::fread(bytes.data() + size, 1, bytes.size() - size, file.get());
    size += got;
    if (got == 0) {
      if (std::ferror(file.get())) throw CorruptImage(std::strerror(errno));
      return {bytes.data(), size};
    }
  }
  throw CorruptImage("over 256 MiB");
}

// One that the caller holds, two that fill up, and more where a batch is too small to keep all workers busy.
std::size_t buffers_for(std::uint64_t batch, std::uint64_t workers) {
  return 2 + std::max<std::uint64_t>(1, (workers + batch - 1) / batch);
}

}  // namespace

std::int64_t corrupt_files_allowed(std::int64_t files, std::int64_t tried) {
  constexpr std::int64_t kCountedOver = 1000;
  return std::max<std::int64_t>(1, std::max(tried, std::min(files, kCountedOver)) / 100);
}

ImageLoader::ImageLoader(const BatchSourceOptions& options)
    : options_(options),
      folder_(list_image_folder(options.data, options.classes)),
      order_(options.seed, folder_.files.size()),
      augmentation_key_(stream_key(options.seed, "augmentation")),
      batch_(static_cast<std::uint64_t>(options.batch_per_device)),
      states_(folder_.files.size(), FileState::untried) {
  options_.workers = std::max(1, options_.workers);
  const std::size_t pixels = batch_ * 3 * static_cast<std::size_t>(options_.image_size * options_.image_size);
  buffers_.resize(buffers_for(batch_, static_cast<std::uint64_t>(options_.workers)));
  for (Buffer& buffer : buffers_) {
    buffer.images.resize(pixels);
    buffer.labels.resize(batch_);
    buffer.missing = options_.batch_per_device;
  }
}

void ImageLoader::start_workers() {
  for (int i = 0; i < options_.workers; ++i)
    workers_.emplace_back([this](const std::stop_token& stop) { work(stop); });
}

Batch ImageLoader::next() {
  if (workers_.empty()) start_workers();
  std::unique_lock lock(mutex_);
  if (handed_out_) {
    buffers_[released_ % buffers_.size()].missing = options_.batch_per_device;
    ++released_;
    handed_out_ = false;
    space_.notify_all();
  }
  const Buffer& buffer = buffers_[released_ % buffers_.size()];
  const auto start = std::chrono::steady_clock::now();
  ready_.wait(lock, [&] { return buffer.missing == 0 || failure_; });
  waited_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (failure_) std::rethrow_exception(failure_);
  handed_out_ = true;
  return {buffer.images, buffer.labels};
}

CorruptFiles ImageLoader::corrupt_files() const {
  const std::scoped_lock lock(mutex_);
  return corrupt_;
}

std::size_t ImageLoader::host_bytes() const {
  std::size_t bytes = 0;
  for (const Buffer& buffer : buffers_)
    bytes += buffer.images.size() * sizeof(float) + buffer.labels.size() * sizeof(std::int64_t);
  return bytes;
}

std::string ImageLoader::description() const {
  return std::to_string(folder_.files.size()) + " images in " + std::to_string(folder_.classes.size()) +
         " classes from " + options_.data + ", " + std::to_string(options_.workers) +
         (options_.workers == 1 ? " worker" : " workers");
}

void ImageLoader::work(const std::stop_token& stop) {
  try {
    Worker worker;
    while (const auto sample = take_sample(stop)) {
      load_sample(worker, *sample);
      finish_sample(*sample);
    }
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    ready_.notify_all();
  }
}

std::optional<std::uint64_t> ImageLoader::take_sample(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  space_.wait(lock, stop, [&] { return next_sample_ < (released_ + buffers_.size()) * batch_; });
  if (stop.stop_requested()) return std::nullopt;
  return next_sample_++;
}

void ImageLoader::load_sample(Worker& worker, std::uint64_t sample) {
  Buffer& buffer = buffer_of(sample);
  const std::uint64_t row = sample % batch_;
  const std::size_t row_pixels = buffer.images.size() / batch_;
  const int size = static_cast<int>(options_.image_size);
  for (std::uint64_t candidate = sample;; ++candidate) {
    const std::size_t file = file_at(candidate);
    if (known_corrupt(file)) continue;
    try {
      const ImageSize full = worker.decoder.read_header(read_file(folder_.path_of(file), worker.bytes));
      const Crop crop = random_crop(full, augmentation_key_, global(sample));
      const RgbxImage image = worker.decoder.decode(eighths_that_cover(crop.size, size));
      worker.resizer.resize(image, scaled(crop, full, image.size), crop.flip, size,
                            std::span(buffer.images).subspan(row * row_pixels, row_pixels));
      buffer.labels[row] = folder_.files[file].label;
      return note_good(file);
    } catch (const CorruptImage& reason) {
      note_corrupt(file, reason.what());
    }
  }
}

void ImageLoader::finish_sample(std::uint64_t sample) {
  const std::scoped_lock lock(mutex_);
  if (--buffer_of(sample).missing == 0) ready_.notify_all();
}

std::uint64_t ImageLoader::global(std::uint64_t sample) const {
  return sample * static_cast<std::uint64_t>(options_.world_size) + static_cast<std::uint64_t>(options_.rank);
}

std::size_t ImageLoader::file_at(std::uint64_t sample) const {
  const std::uint64_t place = global(sample);
  return order_.at(place / order_.count(), place % order_.count());
}

bool ImageLoader::known_corrupt(std::size_t file) const {
  const std::scoped_lock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);  // there may be no good file left to find
  return states_[file] == FileState::corrupt;
}

void ImageLoader::note_good(std::size_t file) {
  const std::scoped_lock lock(mutex_);
  if (states_[file] != FileState::untried) return;
  states_[file] = FileState::good;
  ++tried_;
}

void ImageLoader::note_corrupt(std::size_t file, const std::string& reason) {
  const std::scoped_lock lock(mutex_);
  if (states_[file] == FileState::corrupt) return;  // another worker met it at the same time
  if (states_[file] == FileState::untried) ++tried_;
  states_[file] = FileState::corrupt;
  ++corrupt_.count;
  if (corrupt_.first.size() < kCorruptFilesNamed)
    corrupt_.first.push_back(folder_.path_of(file).string() + " (" + reason + ")");
  const auto files = static_cast<std::int64_t>(folder_.files.size());
  const std::int64_t allowed = std::min(corrupt_files_allowed(files, tried_), files - 1);
  if (corrupt_.count <= allowed) return;
  std::string names;
  for (const std::string& name : corrupt_.first) names += (names.empty() ? "" : ", ") + name;
  throw Error(ExitCode::bad_data, "option --data: " + options_.data + ": " + std::to_string(corrupt_.count) +
                                      " corrupt files among " + std::to_string(tried_) +
                                      " tried, more than 1 %: " + names + "; repair or remove them");
}

}  // namespace plumb
