// --find-max-bs: the largest batch that really runs a step, beside the one that the plan promises.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/options/options.h"
#include "comm/job.h"
#include "kernels/program.h"

namespace plumb {

struct BatchTry {
  std::int64_t batch = 0;
  bool ran = false;
  bool no_engine = false;  // it didn't for want of an engine, not of memory
};

struct BatchSearch {
  std::int64_t batch = 0;  // the largest that ran; 0: not even 1 did
  std::vector<BatchTry> tries;
};

// The largest batch from 1 to `highest` for which `runs` holds. Starts at `estimate`, walks away from it in
// growing strides until what runs and what doesn't are on both sides, then halves the distance; so a good
// estimate takes few tries. `runs` must not fail for a batch below one that it holds for.
BatchSearch search_largest_batch(std::int64_t estimate, std::int64_t highest,
                                 const std::function<bool(std::int64_t batch)>& runs);

struct MaxBatch {
  std::string model = "resnet50";
  std::string device;
  Precision precision = Precision::fp32;
  int world_size = 1;
  std::int64_t image_size = 224;
  BatchSearch search;
  std::int64_t largest_planned = 0;  // batch that the plan alone says fits
  std::size_t planned_bytes = 0;     // of search.batch
  std::size_t peak_bytes = 0;        // that the device has held by the end of its step
};

struct SearchBounds {
  std::optional<double> memory_bytes;  // in place of what the device has
  // Libraries that index with 32 bits have no engine for a tensor of more elements (cuDNN, on a GPU whose
  // memory holds such a one).
  std::int64_t most_elements = std::numeric_limits<std::int32_t>::max();
};

// Of all activations and their gradients: what grows with the batch.
std::int64_t largest_tensor_elements(const Program& program);

// Every rank calls it, and all try the same batches together; each try is a whole set-up and an iteration as
// a run would do it, and is gone before the next. A batch doesn't fit if it throws Error(out_of_memory), or
// if one of its tensors has more than `most_elements` and a library has no engine (kNoEngine); all else is
// thrown on. `tried` hears of every try when it is over.
MaxBatch find_max_batch(const Job& job, const BenchOptions& options,
                        const std::function<void(const BatchTry&)>& tried, const SearchBounds& bounds = {});

// "--bs 4096 doesn't fit: …"
std::string to_text(const BatchTry& one, const SearchBounds& bounds = {});

// The line, or with --json the object, to stdout, and what is tried to stderr; from rank 0. Every rank calls
// it.
void report_max_batch(const Job& job, const BenchOptions& options);

// One line.
std::string to_text(const MaxBatch& found);
nlohmann::ordered_json to_json(const MaxBatch& found);

}  // namespace plumb
