// result.json: one run's configuration, measurements and checks. Every number that is printed has its
// definition here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/record/fields.h"
#include "results/record/links.h"
#include "results/statistics/statistics.h"

namespace plumb {

// Files of version 1, which had other names for some keys, are read, too.
inline constexpr const char* kResultSchema = "plumbline.result/2";
inline constexpr std::string_view kResultSchemaPrefix = "plumbline.result/";

// A collective of a training step as all ranks timed it: seconds and bus bandwidth.
struct CollectiveRecord {
  std::string name, kind;  // "bucket0.allreduce"; as name_of(Collective::Kind) spells it
  std::int64_t bytes = 0;
  ValueRange seconds, bus_bytes_per_second;  // a rank's time includes its wait for the last rank
  int slowest_rank = 0, last_rank = 0;
  static void fields(auto& self, auto&& each) {
    each("name", self.name, Field{"of the op"});
    each("kind", self.kind, Field{"allreduce_sum, allgather, …"});
    each("bytes", self.bytes, Field{"of the whole buffer", 0});
    each("seconds", self.seconds, Field{"over the ranks, from a rank's start to its end"});
    each("bus_bytes_per_second", self.bus_bytes_per_second, Field{"over the ranks, as nccl-tests define it"});
    each("slowest_rank", self.slowest_rank, Field{"has the lowest bus bandwidth: it waited longest", 0});
    each("last_rank", self.last_rank, Field{"has the highest: the others waited for it", 0});
  }
};

// Bus bandwidth over algorithm bandwidth, which is bytes / seconds: 2 (n - 1) / n for an allreduce over n
// ranks, (n - 1) / n for allgather and reduce-scatter, 1 for a broadcast (nccl-tests, doc/PERFORMANCE.md); 0
// for a single rank, which sends nothing.
double bus_factor(std::string_view kind, int ranks);

// `rank_seconds`: one per rank, at least one. A rank whose clock saw no time pass counts as 0 B/s.
CollectiveRecord collective_record(std::string name, std::string kind, std::int64_t bytes,
                                   std::span<const double> rank_seconds);

// Readings, one after the other.
struct GpuSamples {
  std::vector<double> seconds, sm_clock_mhz, memory_clock_mhz, temperature_celsius, power_watts;
  std::vector<bool> throttled;
  static void fields(auto& self, auto&& each) {
    each("seconds", self.seconds, Field{"since the window began"});
    each("sm_clock_mhz", self.sm_clock_mhz), each("memory_clock_mhz", self.memory_clock_mhz);
    each("temperature_celsius", self.temperature_celsius), each("power_watts", self.power_watts);
    each("throttled", self.throttled, Field{"whether the GPU gave a reason by which it was slower"});
  }
  void check(const ObjectReader& reader) const;
};

// A GPU during the timed window: clocks and why they were low, temperature, power, energy.
struct GpuRecord {
  int rank = 0;
  std::string name, id, driver_version;  // id: what Device::unique_id says
  double highest_sm_clock_mhz = 0, window_seconds = 0;
  std::int64_t sample_count = 0;
  ValueRange sm_clock_mhz, memory_clock_mhz, temperature_celsius, power_watts;
  std::map<std::string, double> throttle_reasons;  // "power cap", "thermal", …
  double throttled_share = 0;
  std::optional<double> joules;
  GpuSamples samples;
  static void fields(auto& self, auto&& each) {
    each("rank", self.rank, Field{"", 0});
    each("name", self.name), each("id", self.id, Field{"the GPU's UUID"});
    each("driver_version", self.driver_version);
    each("highest_sm_clock_mhz", self.highest_sm_clock_mhz, Field{"that it can have; 0: not known"});
    each("window_seconds", self.window_seconds, Field{"of the timed iterations"});
    each("sample_count", self.sample_count, Field{"in the window", 0});
    each("sm_clock_mhz", self.sm_clock_mhz), each("memory_clock_mhz", self.memory_clock_mhz);
    each("temperature_celsius", self.temperature_celsius), each("power_watts", self.power_watts);
    each("throttle_reasons", self.throttle_reasons, Field{"share of samples by reason for a lower clock"});
    each("throttled_share", self.throttled_share, Field{"of samples with a reason that makes it slower"});
    each("joules", self.joules, Field{.about = "of the window", .null_if_nothing = true});
    each("samples", self.samples,
         Field{.about = "of rank 0's GPU, a list for each column", .written = !self.samples.seconds.empty()});
  }
};

// Over all ranks' GPUs, each counted once however many ranks share it; nothing unless all `ranks` have one
// that tells its energy.
std::optional<double> total_joules(const std::vector<GpuRecord>& gpus, int ranks);

// "power cap 83 %, thermal 2 %", with the share of the window; empty without reasons.
std::string throttle_reasons_text(const GpuRecord& record);
// "rank 3's GPU was throttled in 83 % of the window (power cap 83 %, thermal 2 %), SM clock 1410 to 1980 of
// 1980 MHz"; empty if it wasn't.
std::string throttling_text(const GpuRecord& record);

// Over all ranks.
struct ImagesPerSecond {
  double mean = 0, median = 0, min = 0, max = 0;
  static void fields(auto& self, auto&& each) {
    each("mean", self.mean, Field{"images of the window / longest window of any rank"});
    each("median", self.median, Field{"of rank 0's steps in the window, as are min and max"});
    each("min", self.min), each("max", self.max);
  }
};

// One rank over the window: mean seconds per step in which it waited in a collective, for data, and in which
// it did neither. The rank that the others wait for waits least in collectives.
struct RankRecord {
  std::string host;
  double exposed_communication_seconds = 0;
  std::optional<double> compute_seconds, data_wait_seconds;  // nothing: a run of before they were kept
  int rank = 0;
  static void fields(auto& self, auto&& each) {
    each("rank", self.rank, Field{.lowest = 0, .written = true});
    each("host", self.host);
    each("exposed_communication_seconds", self.exposed_communication_seconds,
         Field{"mean per step: waited in a collective"});
    each("compute_seconds", self.compute_seconds, Field{"mean per step: waited for nothing"});
    each("data_wait_seconds", self.data_wait_seconds, Field{"mean per step: waited for a batch"});
  }
};

// A rank's process.
struct RankProcess {
  std::string host;
  std::int64_t pid = 0;
  static void fields(auto& self, auto&& each) {
    each("host", self.host), each("pid", self.pid, Field{"", 0});
  }
};

// fnv1a over a parameter's bits, and over its last gradient's, both in public layout.
struct TensorChecksum {
  std::string name, parameter, gradient;
  bool operator==(const TensorChecksum&) const = default;
  static void fields(auto& self, auto&& each) {
    each("name", self.name), each("parameter", self.parameter), each("gradient", self.gradient);
  }
};

// A convolution that ran as plain instructions although its GPU has the fused engine.
struct UnfusedLayer {
  std::string layer, pattern, reason;
  static void fields(auto& self, auto&& each) {
    each("layer", self.layer), each("pattern", self.pattern), each("reason", self.reason);
  }
};

// The `failure` of a run that was ended from outside begins with this word.
inline constexpr std::string_view kInterrupted = "interrupted";

struct RunRecord {
  std::string status = "failed";  // "ok" | "failed"
  std::string failure;            // one sentence; empty when ok
  std::string run_id;  // the same in the files that other ranks leave; empty: a run of before it was kept
  std::vector<RankProcess> processes;
  std::string model, precision, device, device_name;
  std::int64_t batch_per_device = 0;
  int world_size = 1, nodes = 1, devices_per_node = 1;
  int ranks_per_gpu = 1;
  std::int64_t iterations = 0, warmup = 0;
  std::vector<double> step_seconds, loss;  // one per iteration, warm-up included
  std::vector<double> loss_scale;          // empty without loss scaling
  std::int64_t skipped_iterations = 0;
  ImagesPerSecond images_per_second;
  // Seconds of the iterations that follow the warm-up.
  std::span<const double> window() const {
    return std::span(step_seconds).subspan(std::min(static_cast<std::size_t>(warmup), step_seconds.size()));
  }
  std::vector<double> rank_window_seconds;
  double exposed_communication_seconds = 0, data_wait_seconds = 0;
  // What a rank sends in a step's collectives (sent_bytes_per_rank); 0: none, and no key. Bus bandwidth as in
  // bus_factor: these bytes / the seconds per step in which a collective was under way on the rank that spent
  // least so, as the others' include waiting for it. Nothing (no key) where it wasn't timed: a GPU enqueues
  // collectives, and times them with --profile or --trace only.
  double sent_bytes_per_step = 0;
  std::optional<double> bus_bytes_per_second;
  std::int64_t parameters = 0, macs_per_image = 0;  // without class centers: what models are published with
  std::int64_t head_parameters = 0, head_macs_per_image = 0;
  // activations, gradients, optimizer, parameters, peak, planned, workspace
  std::map<std::string, std::int64_t> memory_bytes;
  Json checks = Json::object();
  Json config = Json::object();
  std::vector<std::string> log_files;
  std::vector<RankRecord> ranks;  // empty: a run of before they were kept
  std::optional<double> energy_joules_per_image;
  std::vector<UnfusedLayer> unfused_layers;
  std::vector<std::string> winograd_ops;
  std::vector<CollectiveRecord> collectives;  // of two ranks or more, in the order of the step
  std::vector<GpuRecord> gpus;                // in the order of their ranks
  std::vector<std::string> warnings;
  std::vector<TensorChecksum> tensors;  // in public order
  std::optional<Links> links;           // over MPI; nothing for a single host
  static void fields(auto& self, auto&& each);
};

// NaN and infinities become null when the JSON is written.
Json to_json(const RunRecord& record);
// null reads as NaN where a real number is expected. An ok run must have one entry per iteration and rank.
// Throws Error(bad_data) that names `origin`, the key and what is wrong with it.
RunRecord run_record_from_json(const Json& json, const std::string& origin);
extern const Document kResultDocument;

// Why a run that isn't ok has no score: "the run failed: rank 3 was lost", "the run was interrupted by
// SIGTERM after 5 of 120 iterations, so it is not a measurement; start it again".
std::string failure_text(const RunRecord& record);

// `window_seconds`: of every rank. Steps before `warmup` are left out; zeros if none remain. Throws
// Error(internal) for a step time that is not positive.
ImagesPerSecond images_per_second(const std::vector<double>& step_seconds,
                                  const std::vector<double>& window_seconds, std::int64_t warmup,
                                  std::int64_t images_per_step);

inline constexpr const char* kResultFile = "result.json";  // in a run's folder

struct ResultFile {
  RunRecord record;
  std::uint64_t hash = 0;  // fnv1a of the bytes: equal files are one run copied
};

// Whatever the run's status. Throws Error(bad_data) that names the file, what is wrong and the remedy: it
// can't be read, holds no JSON object, is of a newer schema, or has a key that is missing or of another type.
ResultFile read_result_file(const std::filesystem::path& file);

}  // namespace plumb
