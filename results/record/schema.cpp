#include "results/record/schema.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "base/paths.h"
#include "base/shallow_json.h"
#include "base/text.h"
#include "base/whole_file.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr const char* kResultSchema1 = "plumbline.result/1";
constexpr RenamedKey kRenamedSince1[]{{"warnings", "remarks"},
                                      {"samples", "moments"},
                                      {"sample_count", "samples"},
                                      {"throttle_reasons", "clock_reasons"},
                                      {"winograd_ops", "winograd_steps"}};

void check_entries(const ObjectReader& reader, const char* key, std::size_t entries, std::size_t wanted,
                   const char* each) {
  if (entries != wanted) reader.fail(key, fmt::format("expected one entry per {}", each));
}

// Consistency of a complete run; a failed one may have stopped anywhere.
void check_complete(const ObjectReader& reader, const RunRecord& record) {
  const auto iterations = static_cast<std::size_t>(record.iterations);
  if (record.warmup >= record.iterations) reader.fail("warmup", "expected less than 'iterations'");
  check_entries(reader, "step_seconds", record.step_seconds.size(), iterations, "iteration");
  check_entries(reader, "loss", record.loss.size(), iterations, "iteration");
  check_entries(reader, "rank_window_seconds", record.rank_window_seconds.size(),
                static_cast<std::size_t>(record.world_size), "rank");
}

[[noreturn]] void refuse(const fs::path& file, const std::string& what) {
  throw Error(ExitCode::bad_data, "file '{}': {}", printable(file.string()), what);
}

// N of "plumbline.result/N"; 0 for anything else.
int version_of(std::string_view schema) {
  int version = 0;
  if (schema.starts_with(kResultSchemaPrefix))
    std::from_chars(schema.data() + kResultSchemaPrefix.size(), schema.data() + schema.size(), version);
  return version;
}

std::string throttled_percent(double share) {
  return share < 0.01 ? "under 1 %" : fmt::format("{} %", std::llround(100 * share));
}

}  // namespace

void GpuSamples::check(const ObjectReader& reader) const {
  fields(*this, [&](const char* key, const auto& column, const Field& = {}) {
    if (column.size() != seconds.size()) reader.fail(key, "expected as many entries as in other columns");
  });
}

void RunRecord::fields(auto& self, auto&& each) {
  each("status", self.status, Field{"ok or failed"});
  each("failure", self.failure, Field{"one sentence; empty when ok"});
  each("model", self.model), each("precision", self.precision);
  each("device", self.device, Field{"cpu or cuda"}), each("device_name", self.device_name);
  each("batch_per_device", self.batch_per_device, Field{"images of a rank in a step", 0});
  each("world_size", self.world_size, Field{"ranks", 1});
  each("nodes", self.nodes, Field{"", 1}), each("devices_per_node", self.devices_per_node, Field{"", 1});
  each("iterations", self.iterations, Field{"warm-up included", 0}),
      each("warmup", self.warmup, Field{"", 0});
  each("step_seconds", self.step_seconds, Field{"one per iteration, rank 0, warm-up included"});
  each("loss", self.loss, Field{"one per iteration, mean over the ranks"});
  each(
      "ranks_per_gpu", self.ranks_per_gpu,
      Field{.about = "with --share-gpu, on the fullest GPU", .lowest = 1, .written = self.ranks_per_gpu > 1});
  const bool scales = !self.loss_scale.empty();
  each("loss_scale", self.loss_scale, Field{.about = "one per iteration", .written = scales});
  each("skipped_iterations", self.skipped_iterations,
       Field{.about = "that changed nothing: a gradient overflowed", .lowest = 0, .written = scales});
  each("images_per_second", self.images_per_second, Field{"over all ranks, without the warm-up"});
  each("rank_window_seconds", self.rank_window_seconds, Field{"iterations after the warm-up, one per rank"});
  each("exposed_communication_seconds", self.exposed_communication_seconds,
       Field{"mean per step, rank 0: compute waited for a collective"});
  each("data_wait_seconds", self.data_wait_seconds,
       Field{"mean per step, rank 0: compute waited for a batch"});
  each("sent_bytes_per_step", self.sent_bytes_per_step,
       Field{.about = "that a rank sends in a step's collectives", .written = self.sent_bytes_per_step > 0});
  each("bus_bytes_per_second", self.bus_bytes_per_second, Field{"of the step's collectives"});
  each("parameters", self.parameters, Field{"without class centers", 0});
  each("macs_per_image", self.macs_per_image, Field{"multiply-adds of forward, without class centers", 0});
  const bool has_head = self.head_parameters > 0;
  each("head_parameters", self.head_parameters,
       Field{.about = "class centers of all ranks", .lowest = 0, .written = has_head});
  each("head_macs_per_image", self.head_macs_per_image,
       Field{.about = "with the class centers that a step uses", .lowest = 0, .written = has_head});
  each("memory_bytes", self.memory_bytes, Field{"by part; planned: of the arena, peak: of the process", 0});
  each("checks", self.checks, Field{"by name: true, false or skipped"});
  each("config", self.config, Field{"every option, resolved"});
  each("log_files", self.log_files, Field{"that the run wrote"});
  each("energy_joules_per_image", self.energy_joules_per_image,
       Field{.about = "of all GPUs in the window", .null_if_nothing = true});
  each("ranks", self.ranks, Field{.about = "one per rank", .written = !self.ranks.empty()});
  each("run_id", self.run_id, Field{.about = "16 random digits", .written = !self.run_id.empty()});
  each("processes", self.processes, Field{.about = "one per rank", .written = !self.processes.empty()});
  each(
      "unfused_layers", self.unfused_layers,
      Field{.about = "convolutions whose fused engine wasn't used", .written = !self.unfused_layers.empty()});
  each("winograd_ops", self.winograd_ops,
       Field{.about = "convolutions by Winograd's algorithm", .written = !self.winograd_ops.empty()});
  each("collectives", self.collectives,
       Field{.about = "of --profile and --trace", .written = !self.collectives.empty()});
  each("gpus", self.gpus, Field{.about = "that NVML could read", .written = !self.gpus.empty()});
  each("warnings", self.warnings,
       Field{.about = "a sentence for each odd thing about the run", .written = !self.warnings.empty()});
  each("tensors", self.tensors,
       Field{.about =
                 "rank 0's parameters after a --deterministic run: fnv1a of their bits and their gradients'",
             .written = !self.tensors.empty()});
  each("links", self.links, Field{"between the hosts, probed before the run, as links.json"});
}

Json to_json(const RunRecord& record) {
  return document_json(kResultSchema, record);
}

const Document kResultDocument =
    document_of<RunRecord>(kResultSchema, "A run of bench_resnet50 or bench_arcface.");

RunRecord run_record_from_json(const Json& json, const std::string& origin) {
  const std::string schema = ObjectReader(json, origin).text("schema");
  const bool is_version_1 = schema == kResultSchema1;
  const ObjectReader reader(json, origin, "", kResultSchema,
                            is_version_1 ? RenamedKeys(kRenamedSince1) : RenamedKeys());
  if (!is_version_1 && schema != kResultSchema)
    reader.fail("schema", fmt::format("unknown schema '{}'", schema));
  RunRecord record;
  fields::read_all(reader, record);
  if (record.status != "ok" && record.status != "failed") reader.fail("status", "expected ok or failed");
  for (const auto& [key, value] : record.checks.items())
    if (!value.is_boolean() && value != "skipped")
      reader.fail("checks." + key, "expected true, false or \"skipped\"");
  const auto ranks = static_cast<std::size_t>(record.world_size);
  if (!record.ranks.empty()) check_entries(reader, "ranks", record.ranks.size(), ranks, "rank");
  if (!record.processes.empty()) check_entries(reader, "processes", record.processes.size(), ranks, "rank");
  if (record.status == "ok") check_complete(reader, record);
  return record;
}

ResultFile read_result_file(const fs::path& path) {
  const std::string text = read_whole_file(path, {.remedy = std::string("pass a ") + kResultFile});
  const Json json = parse_shallow_json(text);
  if (!json.is_object())
    refuse(path, "expected a result.json, and it is not a JSON object; run the bench again");
  if (const auto schema = json.find("schema"); schema != json.end() && schema->is_string())
    if (const std::string name = *schema; version_of(name) > version_of(kResultSchema))
      refuse(path, fmt::format("its schema {} is newer than {}, which this plumbline reads; update plumbline",
                               name, kResultSchema));
  return {run_record_from_json(json, fmt::format("file '{}'", printable(path.string()))), fnv1a(text)};
}

std::string failure_text(const RunRecord& record) {
  const std::string& failure = record.failure;
  if (failure.starts_with(kInterrupted))
    return fmt::format("the run was {}, so it is not a measurement; start it again", failure);
  return "the run failed" + (failure.empty() ? "" : ": " + failure);
}

ImagesPerSecond images_per_second(const std::vector<double>& step_seconds,
                                  const std::vector<double>& window_seconds, std::int64_t warmup,
                                  std::int64_t images_per_step) {
  const auto first = static_cast<std::size_t>(std::max<std::int64_t>(warmup, 0));
  if (step_seconds.size() <= first || window_seconds.empty()) return {};
  const double images = static_cast<double>(images_per_step);
  std::vector<double> speeds;
  for (std::size_t i = first; i < step_seconds.size(); ++i) {
    if (!(step_seconds[i] > 0))
      throw Error(ExitCode::internal, "step {} took {:f} s, which is impossible; report this", i,
                  step_seconds[i]);
    speeds.push_back(images / step_seconds[i]);
  }
  const double longest = *std::max_element(window_seconds.begin(), window_seconds.end());
  const auto [slowest, fastest] = std::minmax_element(speeds.begin(), speeds.end());
  return {.mean = images * static_cast<double>(speeds.size()) / longest,
          .median = median(speeds),
          .min = *slowest,
          .max = *fastest};
}

std::optional<double> total_joules(const std::vector<GpuRecord>& gpus, int ranks) {
  if (gpus.empty() || gpus.size() != static_cast<std::size_t>(ranks)) return std::nullopt;
  std::map<std::string, double> joules_by_gpu;
  for (const GpuRecord& gpu : gpus) {
    if (!gpu.joules) return std::nullopt;
    double& joules = joules_by_gpu[gpu.id];  // ranks that share a GPU each see all of it
    joules = std::max(joules, *gpu.joules);
  }
  double total = 0;
  for (const auto& [id, joules] : joules_by_gpu) total += joules;
  return total;
}

std::string throttle_reasons_text(const GpuRecord& record) {
  std::string reasons;
  for (const auto& [reason, share] : record.throttle_reasons)
    append_part(reasons, fmt::format("{} {}", reason, throttled_percent(share)));
  return reasons;
}

std::string throttling_text(const GpuRecord& record) {
  if (!(record.throttled_share > 0)) return "";
  return fmt::format("rank {}'s GPU was throttled in {} of the window ({}), SM clock {:.0f} to {:.0f}{} MHz",
                     record.rank, throttled_percent(record.throttled_share), throttle_reasons_text(record),
                     record.sm_clock_mhz.min, record.sm_clock_mhz.max,
                     record.highest_sm_clock_mhz > 0
                         ? fmt::format(" of {}", std::llround(record.highest_sm_clock_mhz))
                         : "");
}

double bus_factor(std::string_view kind, int ranks) {
  if (kind == "broadcast") return ranks > 1 ? 1 : 0;
  const double others = (ranks - 1.0) / ranks;
  return kind.starts_with("allreduce") ? 2 * others : others;
}

CollectiveRecord collective_record(std::string name, std::string kind, std::int64_t bytes,
                                   std::span<const double> rank_seconds) {
  CollectiveRecord record{.name = std::move(name), .kind = std::move(kind), .bytes = bytes};
  const double moved =
      static_cast<double>(bytes) * bus_factor(record.kind, static_cast<int>(rank_seconds.size()));
  const auto speeds = mapped(rank_seconds, [&](double seconds) { return seconds > 0 ? moved / seconds : 0; });
  const auto [shortest, longest] = std::ranges::minmax_element(rank_seconds);
  record.seconds = range_of(rank_seconds);
  record.bus_bytes_per_second = range_of(speeds);
  record.slowest_rank = static_cast<int>(longest - rank_seconds.begin());
  record.last_rank = static_cast<int>(shortest - rank_seconds.begin());
  return record;
}

}  // namespace plumb
