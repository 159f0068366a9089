#include "results/record/schema.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kMemoryKeys{"parameters", "gradients", "optimizer", "activations",
                                 "workspace",  "planned",   "peak"};

// Memory in the order of kMemoryKeys, then anything else.
Json memory_json(const std::map<std::string, std::int64_t>& bytes) {
  Json json = Json::object();
  for (const char* key : kMemoryKeys)
    if (const auto entry = bytes.find(key); entry != bytes.end()) json[key] = entry->second;
  for (const auto& [key, value] : bytes) json[key] = value;
  return json;
}

void read_measurements(const ObjectReader& reader, RunRecord& record) {
  record.step_seconds = reader.numbers("step_seconds");
  record.loss = reader.numbers("loss");
  const ObjectReader speeds = reader.inside("images_per_second");
  record.images_per_second = {speeds.number("mean"), speeds.number("median"), speeds.number("min"),
                              speeds.number("max")};
  record.rank_window_seconds = reader.numbers("rank_window_seconds");
  record.exposed_communication_seconds = reader.number("exposed_communication_seconds");
  record.data_wait_seconds = reader.number("data_wait_seconds");
  if (reader.has("sent_bytes_per_step")) record.sent_bytes_per_step = reader.number("sent_bytes_per_step");
  if (reader.has("bus_bytes_per_second")) record.bus_bytes_per_second = reader.number("bus_bytes_per_second");
  if (reader.has("probed_bytes_per_second"))
    record.probed_bytes_per_second = reader.number("probed_bytes_per_second");
  if (reader.has("modelled_exchange_seconds"))
    record.modelled_exchange_seconds = reader.number("modelled_exchange_seconds");
}

void read_ranks(const ObjectReader& reader, const std::string& origin, RunRecord& record) {
  if (!reader.has("ranks")) return;
  const Json& ranks = reader.list("ranks");
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const ObjectReader of(ranks[rank], origin, fmt::format("ranks[{}]", rank));
    RankRecord& read = record.ranks.emplace_back();
    read.host = of.text("host");
    read.exposed_communication_seconds = of.number("exposed_communication_seconds");
    if (of.has("compute_seconds")) read.compute_seconds = of.number("compute_seconds");
    if (of.has("data_wait_seconds")) read.data_wait_seconds = of.number("data_wait_seconds");
  }
  if (record.ranks.size() != static_cast<std::size_t>(record.world_size))
    reader.fail("ranks", "has not one entry per rank");
}

void read_processes(const ObjectReader& reader, const std::string& origin, RunRecord& record) {
  if (!reader.has("processes")) return;
  for (const Json& process : reader.list("processes")) {
    const ObjectReader of(process, origin, "processes");
    record.processes.push_back({of.text("host"), of.integer("pid", 0)});
  }
  if (record.processes.size() != static_cast<std::size_t>(record.world_size))
    reader.fail("processes", "has not one entry per rank");
}

Json rank_json(std::size_t rank, const RankRecord& record) {
  Json json{{"rank", rank},
            {"host", record.host},
            {"exposed_communication_seconds", record.exposed_communication_seconds}};
  if (record.compute_seconds) json["compute_seconds"] = *record.compute_seconds;
  if (record.data_wait_seconds) json["data_wait_seconds"] = *record.data_wait_seconds;
  return json;
}

void read_memory(const ObjectReader& reader, RunRecord& record) {
  const ObjectReader memory = reader.inside("memory_bytes");
  for (const auto& [key, value] : reader.object("memory_bytes").items())
    record.memory_bytes[key] = memory.integer(key, 0);
}

void read_checks(const ObjectReader& reader, RunRecord& record) {
  record.checks = reader.object("checks");
  for (const auto& [key, value] : record.checks.items())
    if (!value.is_boolean() && value != "skipped")
      reader.fail("checks." + key, "is not true, false or \"skipped\"");
}

// Consistency of a complete run; a failed one may have stopped anywhere.
void check_complete(const ObjectReader& reader, const RunRecord& record) {
  const auto iterations = static_cast<std::size_t>(record.iterations);
  if (record.warmup >= record.iterations) reader.fail("warmup", "is not below 'iterations'");
  if (record.step_seconds.size() != iterations)
    reader.fail("step_seconds", "has not one entry per iteration");
  if (record.loss.size() != iterations) reader.fail("loss", "has not one entry per iteration");
  if (record.rank_window_seconds.size() != static_cast<std::size_t>(record.world_size))
    reader.fail("rank_window_seconds", "has not one entry per rank");
}

}  // namespace

Json to_json(const RunRecord& record) {
  const ImagesPerSecond& speed = record.images_per_second;
  Json json{{"schema", kResultSchema},
            {"status", record.status},
            {"failure", record.failure},
            {"model", record.model},
            {"precision", record.precision},
            {"device", record.device},
            {"device_name", record.device_name},
            {"batch_per_device", record.batch_per_device},
            {"world_size", record.world_size},
            {"nodes", record.nodes},
            {"devices_per_node", record.devices_per_node},
            {"iterations", record.iterations},
            {"warmup", record.warmup},
            {"step_seconds", record.step_seconds},
            {"loss", record.loss}};
  if (record.ranks_per_gpu > 1) json["ranks_per_gpu"] = record.ranks_per_gpu;
  if (!record.loss_scale.empty()) {
    json["loss_scale"] = record.loss_scale;
    json["skipped_iterations"] = record.skipped_iterations;
  }
  json["images_per_second"] =
      Json{{"mean", speed.mean}, {"median", speed.median}, {"min", speed.min}, {"max", speed.max}};
  json["rank_window_seconds"] = record.rank_window_seconds;
  json["exposed_communication_seconds"] = record.exposed_communication_seconds;
  json["data_wait_seconds"] = record.data_wait_seconds;
  if (record.sent_bytes_per_step > 0) json["sent_bytes_per_step"] = record.sent_bytes_per_step;
  if (record.bus_bytes_per_second) json["bus_bytes_per_second"] = *record.bus_bytes_per_second;
  if (record.probed_bytes_per_second) json["probed_bytes_per_second"] = *record.probed_bytes_per_second;
  if (record.modelled_exchange_seconds) json["modelled_exchange_seconds"] = *record.modelled_exchange_seconds;
  json["parameters"] = record.parameters;
  json["macs_per_image"] = record.macs_per_image;
  if (record.head_parameters > 0) {
    json["head_parameters"] = record.head_parameters;
    json["head_macs_per_image"] = record.head_macs_per_image;
  }
  json["memory_bytes"] = memory_json(record.memory_bytes);
  json["checks"] = record.checks;
  if (record.largest_checked_message_bytes > 0)
    json["largest_checked_message_bytes"] = record.largest_checked_message_bytes;
  json["config"] = record.config;
  json["log_files"] = record.log_files;
  json["energy_joules_per_image"] =
      record.energy_joules_per_image ? Json(*record.energy_joules_per_image) : Json(nullptr);
  for (std::size_t rank = 0; rank < record.ranks.size(); ++rank)
    json["ranks"].push_back(rank_json(rank, record.ranks[rank]));
  if (!record.run_id.empty()) json["run_id"] = record.run_id;
  for (const RankProcess& process : record.processes)
    json["processes"].push_back({{"host", process.host}, {"pid", process.pid}});
  for (const UnfusedLayer& layer : record.unfused_layers)
    json["unfused_layers"].push_back(
        {{"layer", layer.layer}, {"pattern", layer.pattern}, {"reason", layer.reason}});
  if (!record.winograd_steps.empty()) json["winograd_steps"] = record.winograd_steps;
  for (const CollectiveRecord& collective : record.collectives)
    json["collectives"].push_back(to_json(collective));
  for (const GpuRecord& gpu : record.gpus) json["gpus"].push_back(to_json(gpu));
  if (!record.odd_hosts.empty()) json["odd_hosts"] = record.odd_hosts;
  if (!record.remarks.empty()) json["remarks"] = record.remarks;
  if (record.links) json["links"] = to_json(*record.links);
  return json;
}

RunRecord run_record_from_json(const Json& json, const std::string& origin) {
  const ObjectReader reader(json, origin);
  if (const std::string schema = reader.text("schema"); schema != kResultSchema)
    reader.fail("schema", fmt::format("is '{}'", schema));
  RunRecord record;
  record.status = reader.text("status");
  if (record.status != "ok" && record.status != "failed") reader.fail("status", "is neither ok nor failed");
  record.failure = reader.text("failure");
  record.model = reader.text("model");
  record.precision = reader.text("precision");
  record.device = reader.text("device");
  record.device_name = reader.text("device_name");
  record.batch_per_device = reader.integer("batch_per_device", 0);
  record.world_size = reader.count("world_size", 1);
  record.nodes = reader.count("nodes", 1);
  record.devices_per_node = reader.count("devices_per_node", 1);
  if (reader.has("ranks_per_gpu")) record.ranks_per_gpu = reader.count("ranks_per_gpu", 1);
  record.iterations = reader.integer("iterations", 0);
  record.warmup = reader.integer("warmup", 0);
  read_measurements(reader, record);
  record.parameters = reader.integer("parameters", 0);
  record.macs_per_image = reader.integer("macs_per_image", 0);
  if (reader.has("head_parameters")) {
    record.head_parameters = reader.integer("head_parameters", 0);
    record.head_macs_per_image = reader.integer("head_macs_per_image", 0);
  }
  read_ranks(reader, origin, record);
  if (reader.has("run_id")) record.run_id = reader.text("run_id");
  read_processes(reader, origin, record);
  read_memory(reader, record);
  read_checks(reader, record);
  if (reader.has("largest_checked_message_bytes"))
    record.largest_checked_message_bytes = reader.integer("largest_checked_message_bytes", 1);
  record.config = reader.object("config");
  record.log_files = reader.texts("log_files");
  if (!reader.any("energy_joules_per_image").is_null())
    record.energy_joules_per_image = reader.number("energy_joules_per_image");
  if (reader.has("loss_scale")) {
    record.loss_scale = reader.numbers("loss_scale");
    record.skipped_iterations = reader.integer("skipped_iterations", 0);
  }
  if (reader.has("unfused_layers"))
    for (const Json& layer : reader.list("unfused_layers")) {
      const ObjectReader of(layer, origin, "unfused_layers");
      record.unfused_layers.push_back({of.text("layer"), of.text("pattern"), of.text("reason")});
    }
  if (reader.has("winograd_steps")) record.winograd_steps = reader.texts("winograd_steps");
  if (reader.has("collectives"))
    for (const Json& collective : reader.list("collectives"))
      record.collectives.push_back(read_collective_record({collective, origin, "collectives"}));
  if (reader.has("gpus"))
    for (const Json& gpu : reader.list("gpus")) record.gpus.push_back(read_gpu_record({gpu, origin, "gpus"}));
  if (reader.has("odd_hosts")) record.odd_hosts = reader.texts("odd_hosts");
  if (reader.has("remarks")) record.remarks = reader.texts("remarks");
  if (reader.has("links")) record.links = links_from_json(reader.object("links"), origin + ", links");
  if (record.status == "ok") check_complete(reader, record);
  return record;
}

std::optional<double> exchange_seconds(const RunRecord& record) {
  if (!record.bus_bytes_per_second || !(*record.bus_bytes_per_second > 0)) return std::nullopt;
  return record.sent_bytes_per_step / *record.bus_bytes_per_second;
}

std::string failure_text(const RunRecord& record) {
  const std::string& failure = record.failure;
  if (failure.starts_with(kInterrupted))
    return fmt::format("the run was {}, so it is no measurement; start it again", failure);
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
      throw Error(ExitCode::internal, "step {} took {:f} s, which no step can; report this", i,
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

}  // namespace plumb
