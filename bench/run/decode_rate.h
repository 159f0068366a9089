// --decode-only: how fast batches of images are loaded, without training.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/data/batch_source.h"
#include "bench/options/options.h"
#include "comm/job.h"
#include "results/record/fields.h"

namespace plumb {

inline constexpr const char* kDecodeSchema = "plumbline.decode/1";

struct DecodeRate {
  std::string data;  // "1280 images in 10 classes from photos"
  std::int64_t image_size = 224;
  std::int64_t batch_per_device = 1;
  int world_size = 1;
  std::int64_t workers = 1;  // over all ranks
  std::int64_t images = 0;   // loaded in the window, over all ranks
  double seconds = 0;        // of the window, on the slowest rank
  double cpu_seconds = 0;    // of all threads in the window, over all ranks
  CorruptFiles corrupt;      // of all ranks

  double images_per_second() const { return static_cast<double>(images) / seconds; }
  // What a core would load that did nothing else.
  double images_per_core_second() const { return static_cast<double>(images) / cpu_seconds; }
  static void fields(auto& self, auto&& each) {
    const auto& first = self.corrupt.first;
    each("data", self.data), each("image_size", self.image_size, Field{"pixels"});
    each("batch_per_device", self.batch_per_device), each("world_size", self.world_size);
    each("workers", self.workers, Field{"over all ranks"}), each("images", self.images);
    each("seconds", self.seconds, Field{"of the slowest rank"});
    each("images_per_second", self.images_per_second());
    each("images_per_second_per_core", self.images_per_core_second());
    each("cpu_seconds_per_image", 1 / self.images_per_core_second());
    each("corrupt_images", self.corrupt.count);
    each("first_corrupt_image", first.empty() ? "" : first.front(), Field{.written = !first.empty()});
  }
};

// Every rank loads --iters batches, the first --warmup of which don't count; rank 0 prints the result.
void report_decode_rate(const Job& job, const BenchOptions& options);

std::string to_text(const DecodeRate& rate);

}  // namespace plumb
