// Batches from encoded images, decoded ahead by worker threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "base/random.h"
#include "bench/data/augment.h"
#include "bench/data/batch_source.h"
#include "bench/data/encoded_images.h"
#include "bench/data/resizer.h"

namespace plumb {

// A shuffled order of [0, count) for each epoch, as a function: no memory, the same on every rank.
class ShuffledOrder {
 public:
  // count in [1, 2^62]
  ShuffledOrder(std::uint64_t seed, std::uint64_t count);
  // Position in [0, count) -> image; over all positions every image comes exactly once.
  std::uint64_t at(std::uint64_t epoch, std::uint64_t position) const;
  std::uint64_t count() const { return count_; }

 private:
  // A Feistel network makes a pseudo-random permutation of the numbers of an even number of bits (Luby and
  // Rackoff, 1988; ten rounds as in NIST SP 800-38G, since folders may be small); what falls outside [0,
  // count) is permuted again (cycle walking; Black and Rogaway, 2002).
  std::uint64_t permuted(std::uint64_t epoch, std::uint64_t number) const;

  PhiloxKey key_;
  std::uint64_t count_;
  int half_bits_;
};

// Memory that threads share: a thread that needs more than is left waits for the others.
class ByteBudget {
 public:
  explicit ByteBudget(std::size_t bytes) : left_(bytes) {}

  // A thread's part, for as long as it lives. A thread that has one must not wait for a second.
  class Share {
   public:
    // `bytes`: at most the whole budget.
    Share(ByteBudget& budget, std::size_t bytes) : budget_(budget), bytes_(bytes) {
      std::unique_lock lock(budget_.mutex_);
      budget_.freed_.wait(lock, [&] { return budget_.left_ >= bytes_; });
      budget_.left_ -= bytes_;
    }
    ~Share() {
      const std::scoped_lock lock(budget_.mutex_);
      budget_.left_ += bytes_;
      budget_.freed_.notify_all();
    }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

   private:
    ByteBudget& budget_;
    std::size_t bytes_;
  };

 private:
  std::mutex mutex_;  // guards left_
  std::condition_variable freed_;
  std::size_t left_;
};

// The job goes through the shuffled images again and again; sample g of this endless row belongs to rank
// g % world_size, and batches run across the ends of epochs. A corrupt image is replaced by the one that
// follows in the rank's row (which still gets its own turn). Crops and flips are keyed by (seed, g): neither
// the number of workers nor their timing changes a batch. Workers load some batches ahead.
class ImageLoader : public BatchSource {
 public:
  // Bytes of host memory for what workers decode in and for these batches.
  static std::size_t batches_bytes(const BatchSourceOptions& options);

  // Opens and checks the folder or file; decoding starts with the first next().
  explicit ImageLoader(const BatchSourceOptions& options);

  PixelBatch next() override;
  double waited_seconds() const override { return waited_seconds_; }
  CorruptFiles corrupt_files() const override;
  std::string fingerprint() const override { return images_->fingerprint(); }
  std::size_t host_bytes() const override;
  std::string description() const override;

 private:
  struct Buffer {
    std::shared_ptr<std::byte> memory, pixel_memory;
    std::span<std::uint8_t> pixels;
    std::span<std::int32_t> labels;
    std::int64_t missing = 0;  // samples that aren't there yet
  };
  // State that a worker reuses from image to image.
  struct Worker {
    Resizer resizer;
    ImageDecoder decoder;
    std::vector<std::uint8_t> bytes;
  };

  Buffer make_buffer() const;
  void work(const std::stop_token& stop);
  std::optional<std::uint64_t> take_sample(const std::stop_token& stop);
  void load_sample(Worker& worker, std::uint64_t sample);
  // An image's crop, resized, to its place in a batch.
  void decode(Worker& worker, const EncodedImage& encoded, std::uint64_t sample,
              std::span<std::uint8_t> pixels);
  void finish_sample(std::uint64_t sample);
  // Sample of this rank -> sample of the job.
  std::uint64_t global(std::uint64_t sample) const;
  std::size_t image_at(std::uint64_t sample) const;
  // Rethrows another worker's failure.
  void rethrow_failure() const;
  // Throws Error(bad_data) if all images are corrupt, or more than one and more than 1 % of those tried. The
  // 1 % is of at least 1,000 images, or of all if there are fewer.
  void note_corrupt(std::size_t image, const std::string& reason);
  Buffer& buffer_of(std::uint64_t sample) { return buffers_[sample / batch_ % buffers_.size()]; }

  BatchSourceOptions options_;
  std::unique_ptr<EncodedImages> images_;
  ShuffledOrder order_;
  PhiloxKey augmentation_key_;
  std::uint64_t batch_;
  std::size_t image_bytes_;
  ByteBudget encoded_{kMostReadBytes};  // of images that take more than a worker's own part
  ByteBudget coefficients_{ImageDecoder::kMostCoefficientBytes};  // that workers hold
  double waited_seconds_ = 0;

  mutable std::mutex mutex_;           // guards what follows
  std::condition_variable_any ready_;  // a batch is complete, or a worker failed
  std::condition_variable_any space_;  // a buffer is free again
  std::vector<Buffer> buffers_;        // a ring over batches; pixels are written without the lock
  std::uint64_t handed_out_ = 0;       // batches, the one that the caller waits for included
  std::uint64_t end_ = 0;              // of the batches that may be loaded
  std::uint64_t next_sample_ = 0;
  std::set<std::size_t> corrupt_images_;
  CorruptFiles corrupt_;
  std::exception_ptr failure_;

  std::vector<std::jthread> workers_;  // last: they end before anything they use
};

}  // namespace plumb
