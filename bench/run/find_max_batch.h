// --find-max-bs: the largest batch that really runs a step, and the largest by the plan.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/console/messages.h"
#include "bench/options/options.h"
#include "bench/plan/step_plan.h"
#include "comm/job.h"

namespace plumb {

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

// Every rank calls it, and all try the same batches together; each try sets up a run, runs an iteration and
// releases everything. A batch doesn't fit if it throws Error(out_of_memory), or, above one image, if a
// library has no engine for it (kNoEngine); other errors are thrown on. On a CPU, where steps take long, a
// try ends with the plan and its workspaces; the largest batch that is left runs. `memory_bytes`: instead of
// what the device has.
MaxBatch find_max_batch(const Job& job, const BenchOptions& options, Messages& messages,
                        std::optional<double> memory_bytes = {});

// Rank 0 prints the result to stdout, and each try to stderr. Every rank calls it.
void report_max_batch(const Job& job, const BenchOptions& options);

std::string to_text(const MaxBatch& found);

}  // namespace plumb
