// The "gpus" of result.json.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "results/record/schema.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

// The columns of moments with a number each; the last one is "throttled".
constexpr std::pair<const char*, double GpuMoment::*> kColumns[]{
    {"seconds", &GpuMoment::seconds},
    {"sm_clock_mhz", &GpuMoment::sm_clock_mhz},
    {"memory_clock_mhz", &GpuMoment::memory_clock_mhz},
    {"temperature_celsius", &GpuMoment::temperature_celsius},
    {"power_watts", &GpuMoment::power_watts}};

// At least one moment.
Json moments_json(const std::vector<GpuMoment>& moments) {
  Json json;
  for (const auto& [key, member] : kColumns)
    for (const GpuMoment& moment : moments) json[key].push_back(moment.*member);
  for (const GpuMoment& moment : moments) json["throttled"].push_back(moment.throttled);
  return json;
}

std::vector<GpuMoment> read_moments(const ObjectReader& columns) {
  std::vector<GpuMoment> moments(columns.list("seconds").size());
  for (const auto& [key, member] : kColumns) {
    const std::vector<double> values = columns.numbers(key);
    if (values.size() != moments.size()) columns.fail(key, "has not one entry per moment");
    for (std::size_t i = 0; i < values.size(); ++i) moments[i].*member = values[i];
  }
  const Json& throttled = columns.list("throttled");
  if (throttled.size() != moments.size()) columns.fail("throttled", "has not one entry per moment");
  for (std::size_t i = 0; i < moments.size(); ++i) {
    if (!throttled[i].is_boolean()) columns.fail("throttled", "holds something that is not true or false");
    moments[i].throttled = throttled[i].get<bool>();
  }
  return moments;
}

std::string throttled_percent(double share) {
  return share < 0.01 ? "under 1 %" : fmt::format("{} %", std::llround(100 * share));
}

}  // namespace

Json to_json(const GpuRecord& record) {
  Json json{{"rank", record.rank},
            {"name", record.name},
            {"id", record.id},
            {"driver_version", record.driver_version},
            {"highest_sm_clock_mhz", record.highest_sm_clock_mhz},
            {"window_seconds", record.window_seconds},
            {"samples", record.samples},
            {"sm_clock_mhz", to_json(record.sm_clock_mhz)},
            {"memory_clock_mhz", to_json(record.memory_clock_mhz)},
            {"temperature_celsius", to_json(record.temperature_celsius)},
            {"power_watts", to_json(record.power_watts)},
            {"clock_reasons", record.clock_reasons},
            {"throttled_share", record.throttled_share},
            {"joules", record.joules ? Json(*record.joules) : Json(nullptr)},
            {"energy_source", record.energy_source}};
  if (!record.moments.empty()) json["moments"] = moments_json(record.moments);
  return json;
}

GpuRecord read_gpu_record(const ObjectReader& reader) {
  GpuRecord record;
  record.rank = reader.count("rank", 0);
  record.name = reader.text("name");
  record.id = reader.text("id");
  record.driver_version = reader.text("driver_version");
  record.highest_sm_clock_mhz = reader.number("highest_sm_clock_mhz");
  record.window_seconds = reader.number("window_seconds");
  record.samples = reader.integer("samples", 0);
  record.sm_clock_mhz = reader.range("sm_clock_mhz");
  record.memory_clock_mhz = reader.range("memory_clock_mhz");
  record.temperature_celsius = reader.range("temperature_celsius");
  record.power_watts = reader.range("power_watts");
  const ObjectReader reasons = reader.inside("clock_reasons");
  for (const auto& [reason, share] : reader.object("clock_reasons").items())
    record.clock_reasons[reason] = reasons.number(reason.c_str());
  record.throttled_share = reader.number("throttled_share");
  if (!reader.any("joules").is_null()) record.joules = reader.number("joules");
  record.energy_source = reader.text("energy_source");
  if (reader.has("moments")) record.moments = read_moments(reader.inside("moments"));
  return record;
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

std::string clock_reasons_text(const GpuRecord& record) {
  std::string reasons;
  for (const auto& [reason, share] : record.clock_reasons)
    append_part(reasons, fmt::format("{} {}", reason, throttled_percent(share)));
  return reasons;
}

std::string throttling_text(const GpuRecord& record) {
  if (!(record.throttled_share > 0)) return "";
  return fmt::format("rank {}'s GPU was throttled in {} of the window ({}), SM clock {:.0f} to {:.0f}{} MHz",
                     record.rank, throttled_percent(record.throttled_share), clock_reasons_text(record),
                     record.sm_clock_mhz.min, record.sm_clock_mhz.max,
                     record.highest_sm_clock_mhz > 0
                         ? fmt::format(" of {}", std::llround(record.highest_sm_clock_mhz))
                         : "");
}

}  // namespace plumb
