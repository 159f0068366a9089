// The options of bench_allreduce: one table drives parsing, --help, completions and the manual page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/options/option_table.h"
#include "bench/options/options.h"
#include "kernels/device.h"

namespace plumb {

inline constexpr const char* kAllreduceProgram = "bench_allreduce";

// A run of the replayed model: "r50:fp16".
struct ReplayedModel {
  std::string text;  // as given; empty: nothing is replayed
  const Model* model = nullptr;
  Precision precision = Precision::fp32;
};

struct AllreduceOptions {
  Collective::Kind collective = Collective::Kind::allreduce_sum;
  std::uint64_t min_bytes = 8, max_bytes = std::uint64_t{64} << 20;
  int factor = 2;
  int iterations = 20, warmup = 5;
  DType dtype = DType::f32;
  DeviceChoice device = DeviceChoice::automatic;
  std::string comm = "auto";  // resolved: "nccl" or "mpi"
  bool share_gpu = false;
  ReplayedModel replay;
  std::optional<std::int64_t> batch_per_device;
  std::optional<double> bucket_mb;
  bool pairs = false;
  std::string output;  // links.json
  bool overwrite = false, json = false, quiet = false;
  Questions questions;
  WatchOptions watch;
};

// "8", "64K", "1M", "1G" (powers of 1024, as nccl-tests reads them). Throws Error(usage) that names `option`.
std::uint64_t parse_bytes(const std::string& option, const std::string& text);
// "64K" where it is a whole number of them; the inverse of parse_bytes().
std::string bytes_text(std::uint64_t bytes);

// Bound to `options`, which must outlive it.
OptionTable allreduce_option_table(AllreduceOptions& options);

// Reads and cross-checks a command line; asked for help, version or completions, nothing else is checked.
// Throws Error(usage), Error(unavailable) for a communicator that this build lacks.
AllreduceOptions parse_allreduce_options(int argc, const char* const* argv);

// What all ranks of a job must share, one "key=value" line per option.
std::string options_fingerprint(const AllreduceOptions& options);

// Fills in the communicator. Throws Error(usage) if the device can't do what is asked for.
AllreduceOptions resolve(AllreduceOptions options, const DeviceLimits& limits);

// Bytes of every message, ascending: from min_bytes, each `factor` times the one before, to at most
// max_bytes, rounded down to whole elements (per rank, for collectives of parts), at least one; none twice.
std::vector<std::uint64_t> message_bytes(const AllreduceOptions& options, int world_size);

}  // namespace plumb
