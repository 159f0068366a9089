#include "bench/data/image_loader.h"

#include <malloc.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/steady_clock.h"
#include "base/text.h"

namespace plumb {
namespace {

// The batch that next() returns, and the two before, which a GPU may still read.
constexpr std::uint64_t kBatchesHeld = 3;
// Batches to load ahead; more for a batch too small to give every worker an image.
constexpr std::uint64_t kAhead = 4;
// Fewer images do not tell what share of them is corrupt.
constexpr std::int64_t kLeastImagesTried = 1000;
// A file, the decoded part of it, the decoder, and what the thread's heap keeps: enough for photographs, more
// than most take. Larger files, and coefficients of images in several scans, come beside, of all workers
// together at most those of one image.
constexpr std::size_t kBytesPerWorker = std::size_t{16} << 20;
constexpr std::size_t kOwnEncodedBytes = kBytesPerWorker / 4;

// Coefficients of large images go back to the system: by default the heap of each thread that decoded some
// keeps up to 64 MiB. Those of 4 megapixels stay, as getting their pages anew takes a fifth of the time to
// decode them.
void give_back_large_memory() {
  ::mallopt(M_MMAP_THRESHOLD, kBytesPerWorker / 2);
  ::mallopt(M_TRIM_THRESHOLD, kBytesPerWorker);
}

std::uint64_t batches_ahead(const BatchSourceOptions& options) {
  const std::int64_t batch = options.batch_per_device;
  return std::max(kAhead, 1 + static_cast<std::uint64_t>((options.workers + batch - 1) / batch));
}

}  // namespace

ShuffledOrder::ShuffledOrder(std::uint64_t seed, std::uint64_t count)
    : key_(stream_key(seed, "order of images")),
      count_(count),
      half_bits_(std::max(1, (static_cast<int>(std::bit_width(count - 1)) + 1) / 2)) {}

std::uint64_t ShuffledOrder::at(std::uint64_t epoch, std::uint64_t position) const {
  std::uint64_t number = position;
  do number = permuted(epoch, number);
  while (number >= count_);
  return number;
}

std::uint64_t ShuffledOrder::permuted(std::uint64_t epoch, std::uint64_t number) const {
  constexpr std::uint32_t kRounds = 10;
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = number >> half_bits_, right = number & mask;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const PhiloxBlock bits =
        philox4x32(key_, {static_cast<std::uint32_t>(right), round, static_cast<std::uint32_t>(epoch),
                          static_cast<std::uint32_t>(epoch >> 32)});
    const std::uint64_t next = left ^ (bits[0] & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

std::size_t ImageLoader::batches_bytes(const BatchSourceOptions& options) {
  const auto images = static_cast<std::size_t>(options.batch_per_device);
  const auto pixels = static_cast<std::size_t>(options.image_size * options.image_size);
  const std::size_t bytes_per_image = sizeof(std::int32_t) + 3 * pixels;
  // A crop is decoded to less than two times the output's size on one side and 8/3 on the other.
  const std::size_t decoded_bytes = 4 * pixels * 16 / 3;
  const std::size_t worker_bytes = std::max(kBytesPerWorker, kBytesPerWorker / 2 + decoded_bytes);
  return static_cast<std::size_t>(options.workers) * worker_bytes + kMostReadBytes +
         ImageDecoder::kMostCoefficientBytes +
         (kBatchesHeld + batches_ahead(options)) * images * bytes_per_image;
}

ImageLoader::ImageLoader(const BatchSourceOptions& options)
    : options_(options),
      images_(open_images(options.data, options.classes)),
      order_(options.seed, images_->count()),
      augmentation_key_(stream_key(options.seed, "augmentation")),
      batch_(static_cast<std::uint64_t>(options.batch_per_device)),
      image_bytes_(3 * static_cast<std::size_t>(options.image_size * options.image_size)) {
  give_back_large_memory();
  while (buffers_.size() < kBatchesHeld + batches_ahead(options)) buffers_.push_back(make_buffer());
}

ImageLoader::Buffer ImageLoader::make_buffer() const {
  const std::size_t pixels = batch_ * image_bytes_;
  Buffer buffer;
  buffer.memory = options_.allocate(batch_ * sizeof(std::int32_t));
  buffer.pixel_memory = options_.allocate(pixels);
  buffer.missing = options_.batch_per_device;
  buffer.pixels = {reinterpret_cast<std::uint8_t*>(buffer.pixel_memory.get()), pixels};
  buffer.labels = {reinterpret_cast<std::int32_t*>(buffer.memory.get()), batch_};
  return buffer;
}

PixelBatch ImageLoader::next() {
  const double entered = steady_seconds();
  std::unique_lock lock(mutex_);
  ++handed_out_;
  if (handed_out_ > kBatchesHeld) {
    Buffer& free = buffers_[(handed_out_ - kBatchesHeld - 1) % buffers_.size()];
    free.missing = options_.batch_per_device;
  }
  end_ = handed_out_ + batches_ahead(options_);
  space_.notify_all();
  while (std::ssize(workers_) < options_.workers)
    workers_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  const Buffer& buffer = buffers_[(handed_out_ - 1) % buffers_.size()];
  ready_.wait(lock, [&] { return buffer.missing == 0 || failure_; });
  waited_seconds_ += steady_seconds() - entered;
  if (failure_) std::rethrow_exception(failure_);
  return {buffer.pixels, buffer.labels};
}

CorruptFiles ImageLoader::corrupt_files() const {
  const std::scoped_lock lock(mutex_);
  return corrupt_;
}

std::size_t ImageLoader::host_bytes() const {
  return images_->host_bytes() + batches_bytes(options_);
}

std::string ImageLoader::description() const {
  return fmt::format("{}, {}", images_->description(), counted(options_.workers, "worker"));
}

void ImageLoader::work(const std::stop_token& stop) {
  try {
    Worker state;
    while (const auto sample = take_sample(stop)) {
      load_sample(state, *sample);
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
  space_.wait(lock, stop, [&] { return next_sample_ < end_ * batch_; });
  if (stop.stop_requested()) return std::nullopt;
  return next_sample_++;
}

void ImageLoader::load_sample(Worker& worker, std::uint64_t sample) {
  Buffer& buffer = buffer_of(sample);
  const std::uint64_t row = sample % batch_;
  for (std::uint64_t candidate = sample;; ++candidate) {
    const std::size_t number = image_at(candidate);
    rethrow_failure();  // there may be no good file left to find
    const std::size_t bytes = std::min(images_->encoded_bytes(number), kMostReadBytes);
    const bool is_large = bytes > kOwnEncodedBytes;
    const ByteBudget::Share share(encoded_, is_large ? bytes : 0);
    std::vector<std::uint8_t> large(is_large ? bytes : 0);
    try {
      const EncodedImage encoded = images_->read(number, is_large ? large : worker.bytes);
      decode(worker, encoded, sample, buffer.pixels.subspan(row * image_bytes_, image_bytes_));
      buffer.labels[row] = static_cast<std::int32_t>(encoded.label);
      return;
    } catch (const CorruptImage& reason) {
      note_corrupt(number, reason.what());
    }
  }
}

void ImageLoader::decode(Worker& worker, const EncodedImage& encoded, std::uint64_t sample,
                         std::span<std::uint8_t> pixels) {
  const int size = static_cast<int>(options_.image_size);
  const ImageSize full = worker.decoder.read_header(encoded.bytes);
  const Crop crop = crop_for(options_.preprocessing, full, augmentation_key_, global(sample));
  const ByteBudget::Share coefficients(coefficients_, worker.decoder.coefficient_bytes());
  const DecodedPart part = worker.decoder.decode(crop, eighths_that_cover(crop.size, size));
  worker.resizer.resize(part.image, part.box, crop.flip, size, pixels);
}

void ImageLoader::finish_sample(std::uint64_t sample) {
  const std::scoped_lock lock(mutex_);
  if (--buffer_of(sample).missing == 0) ready_.notify_all();
}

std::uint64_t ImageLoader::global(std::uint64_t sample) const {
  return sample * static_cast<std::uint64_t>(options_.world_size) + static_cast<std::uint64_t>(options_.rank);
}

std::size_t ImageLoader::image_at(std::uint64_t sample) const {
  const std::uint64_t place = global(sample);
  return order_.at(place / order_.count(), place % order_.count());
}

void ImageLoader::rethrow_failure() const {
  const std::scoped_lock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void ImageLoader::note_corrupt(std::size_t image, const std::string& reason) {
  const std::scoped_lock lock(mutex_);
  if (!corrupt_images_.insert(image).second) return;
  ++corrupt_.count;
  if (corrupt_.first.size() < kCorruptFilesNamed)
    corrupt_.first.push_back(fmt::format("{} ({})", images_->name_of(image), reason));
  const auto images = static_cast<std::int64_t>(images_->count());
  const std::int64_t tried = std::clamp(static_cast<std::int64_t>(next_sample_),
                                        std::min<std::int64_t>(images, kLeastImagesTried), images);
  if (corrupt_.count <= std::min(std::max<std::int64_t>(1, tried / 100), images - 1)) return;
  throw Error(ExitCode::bad_data,
              "--data {}: {} of {} images are corrupt, more than 1 %: {}; repair or remove them",
              options_.data, corrupt_.count, tried, fmt::join(corrupt_.first, ", "));
}

}  // namespace plumb
