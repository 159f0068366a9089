// What a bench program does (Task): it plans a step without a job, trains, looks for the largest batch, or
// only loads images. In a job, every rank calls these functions; answer_…() and
// …_schema() need no job.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/console/messages.h"
#include "bench/data/batch_source.h"
#include "bench/options/options.h"
#include "bench/plan/step_plan.h"
#include "bench/run/device_memory.h"
#include "bench/run/interruption.h"
#include "bench/run/stages.h"
#include "comm/job.h"
#include "comm/watchdog/watchdog.h"
#include "results/record/fields.h"

namespace plumb {

// --dry-run: the memory, work, traffic and roofline time of a step, from its plan alone. Totals, memory,
// phases and the longest instructions for people, at most 100 columns wide. With --json an object of
// dry_run_schema(). Throws Error(usage) if the device lacks the precision.
std::string answer_dry_run(const BenchOptions& asked);
nlohmann::ordered_json dry_run_schema();

// --list-targets: the devices that a step can be planned for, with their memory, bandwidth, peaks, and the
// source of these; at most 100 columns.
std::string answer_targets(bool json);
nlohmann::ordered_json targets_schema();

struct TrainingHooks {
  Interruption& interruption;
  // May be null.
  Watchdog* watchdog = nullptr;
  // See check_exchange(); on the ranks that have it.
  MessageDamage damage_message;
  // Called on every rank when an iteration has ended, outside the timed interval's compute; tests do damage
  // here.
  std::function<void(std::int64_t iteration, BoundStep&)> after_iteration;
};

// One timed training run, to a log, a result folder and a table. Throws Error on which all ranks agree, or
// FailureOfThisRank. result.json says what failed in either case.
void run_training(const Job& job, const BenchOptions& options, const TrainingHooks& hooks);

inline constexpr const char* kMaxBatchSchema = "plumbline.max_batch/1";

struct MaxBatch {
  std::string model = "resnet50";
  std::string device;
  Precision precision = Precision::fp32;
  int world_size = 1;
  std::int64_t image_size = 224;
  BatchSearch search;
  std::int64_t largest_planned = 0;  // by the plan alone
  std::size_t planned_bytes = 0;     // of search.batch
  std::size_t peak_bytes = 0;        // the most that the device held until its step ended
  static void fields(auto& self, auto&& each) {
    each("model", self.model), each("precision", std::string(name_of(self.precision)));
    each("image_size", self.image_size, Field{"pixels"}), each("device_name", self.device);
    each("world_size", self.world_size);
    each("batch_per_device", self.search.batch, Field{"the largest that ran; 0: not even 1"});
    each("planned_batch_per_device", self.largest_planned, Field{"the largest by the plan alone"});
    each("memory_bytes",
         std::map<std::string, std::size_t>{{"planned", self.planned_bytes}, {"peak", self.peak_bytes}});
    each("tries", self.search.tries);
  }
};

// --find-max-bs: the largest batch that really runs a step, and the largest by the plan. All ranks try the
// same batches together; each try sets up a run, runs an iteration and releases everything. A batch doesn't
// fit if it throws Error(out_of_memory), or, above one image, if a library has no engine for it (kNoEngine);
// other errors are thrown on. On a CPU, where steps take long, a try ends with the plan and its workspaces;
// the largest batch that is left runs. `memory_bytes`: instead of what the device has.
MaxBatch find_max_batch(const Job& job, const BenchOptions& options, Messages& messages,
                        std::optional<double> memory_bytes = {});

// Rank 0 prints the result to stdout, and each try to stderr.
void report_max_batch(const Job& job, const BenchOptions& options);

std::string to_text(const MaxBatch& found);

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

// --decode-only: every rank loads --iters batches, the first --warmup of which don't count; rank 0 prints the
// result.
void report_decode_rate(const Job& job, const BenchOptions& options);

std::string to_text(const DecodeRate& rate);

}  // namespace plumb
