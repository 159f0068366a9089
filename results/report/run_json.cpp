#include "results/report/run_json.h"

#include <algorithm>
#include <cmath>

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNanoseconds = 1e9, kGiga = 1e9;

double nanoseconds(double seconds) {
  return std::isfinite(seconds) ? std::round(seconds * kNanoseconds) / kNanoseconds : seconds;
}

// Six digits are more than a picture shows.
double six_digits(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double power = std::pow(10.0, 5 - std::floor(std::log10(std::fabs(value))));
  return std::round(value * power) / power;
}

Json rounded(const std::vector<double>& seconds) {
  return column(seconds, nanoseconds);
}

Json to_json(const StepTimes& instructions) {
  Json json{{"iterations", instructions.iterations},
            {"warmup", instructions.warmup},
            {"per_entry", instructions.per_entry},
            {"median", rounded(instructions.median_seconds)}};
  if (instructions.per_entry > 1) json["min"] = rounded(instructions.min_seconds);
  if (instructions.per_entry > 1) json["max"] = rounded(instructions.max_seconds);
  return json;
}

Json to_json(const StepHistogram& histogram) {
  return {{"low", nanoseconds(histogram.low_seconds)},
          {"width", nanoseconds(histogram.width_seconds)},
          {"counts", histogram.counts},
          {"above", histogram.above},
          {"median", histogram.median_seconds},
          {"p1", histogram.p1_seconds},
          {"p99", histogram.p99_seconds}};
}

Json to_json(const MemoryPicture& memory, Names& names) {
  const auto& blocks = memory.blocks;
  return {{"arena_bytes", memory.arena_bytes},
          {"steps", memory.instructions},
          {"left_out", memory.left_out},
          {"phases", column(memory.phases,
                            [](const InstructionSpan& span) {
                              return Json{{"name", span.phase},
                                          {"first", span.first_instruction},
                                          {"last", span.last_instruction}};
                            })},
          {"name", column(blocks, [&](const MemoryBlock& b) { return names.index(b.name); })},
          {"role", column(blocks, [&](const MemoryBlock& b) { return names.index(b.role); })},
          {"offset", column(blocks, [](const MemoryBlock& b) { return b.offset; })},
          {"bytes", column(blocks, [](const MemoryBlock& b) { return b.bytes; })},
          {"first", column(blocks, [](const MemoryBlock& b) { return b.first_instruction; })},
          {"last", column(blocks, [](const MemoryBlock& b) { return b.last_instruction; })},
          {"buffers", column(blocks, [](const MemoryBlock& b) { return b.buffers; })}};
}

Json to_json(const RunProfile& profile, Names& names) {
  const auto& instructions = profile.instructions;
  return {
      {"device", profile.device},
      {"peak_flops_per_second", profile.peak_flops_per_second},
      {"peak_bytes_per_second", profile.peak_bytes_per_second},
      {"iteration_seconds", nanoseconds(profile.iteration_seconds)},
      {"busy_seconds", nanoseconds(profile.busy_seconds)},
      {"gap_seconds", nanoseconds(profile.gap_seconds)},
      {"roofline_seconds", nanoseconds(profile.roofline_seconds)},
      {"left_out", profile.left_out},
      {"kinds", column(profile.kinds,
                       [](const ProfiledKind& kind) {
                         return Json{{"name", kind.name},
                                     {"steps", kind.instructions},
                                     {"seconds", nanoseconds(kind.seconds)},
                                     {"roofline_seconds", nanoseconds(kind.roofline_seconds)}};
                       })},
      {"name", column(instructions, [&](const ProfiledInstruction& s) { return names.index(s.name); })},
      {"kind", column(instructions, [&](const ProfiledInstruction& s) { return names.index(s.kind); })},
      {"bound_by",
       column(instructions, [&](const ProfiledInstruction& s) { return names.index(s.bound_by); })},
      {"seconds", column(instructions, [](const ProfiledInstruction& s) { return nanoseconds(s.seconds); })},
      {"roofline",
       column(instructions, [](const ProfiledInstruction& s) { return nanoseconds(s.roofline_seconds); })},
      {"gigaflops_per_second",
       column(instructions,
              [](const ProfiledInstruction& s) { return six_digits(s.flops_per_second / kGiga); })},
      {"gigabytes_per_second", column(instructions, [](const ProfiledInstruction& s) {
         return six_digits(s.bytes_per_second / kGiga);
       })}};
}

Json to_json(const RunTrace& trace, Names& names) {
  const auto& spans = trace.spans;
  return {{"process", trace.process},
          {"lanes", trace.lanes},
          {"iteration", trace.iteration},
          {"left_out", trace.left_out},
          {"name", column(spans, [&](const TraceSpan& s) { return names.index(s.name); })},
          {"phase", column(spans, [&](const TraceSpan& s) { return names.index(s.phase); })},
          {"lane", column(spans, [](const TraceSpan& s) { return s.lane; })},
          {"begin", column(spans, [](const TraceSpan& s) { return nanoseconds(s.begin_seconds); })},
          {"seconds", column(spans, [](const TraceSpan& s) { return nanoseconds(s.seconds); })}};
}

Json to_json(const RankRecord& rank) {
  return {{"host", rank.host},
          {"exposed_communication_seconds", nanoseconds(rank.exposed_communication_seconds)}};
}

// Medians of every rank's GPU, and the moments of the one that has them.
Json gpus_json(const std::vector<GpuRecord>& gpus) {
  Json json{
      {"rank", column(gpus, [](const GpuRecord& gpu) { return gpu.rank; })},
      {"sm_clock_mhz", column(gpus, [](const GpuRecord& gpu) { return gpu.sm_clock_mhz.median; })},
      {"power_watts", column(gpus, [](const GpuRecord& gpu) { return six_digits(gpu.power_watts.median); })},
      {"temperature_celsius",
       column(gpus, [](const GpuRecord& gpu) { return gpu.temperature_celsius.median; })},
      {"throttled_share",
       column(gpus, [](const GpuRecord& gpu) { return six_digits(gpu.throttled_share); })}};
  const auto watched =
      std::find_if(gpus.begin(), gpus.end(), [](const GpuRecord& gpu) { return !gpu.moments.empty(); });
  if (watched == gpus.end()) return json;
  const auto& moments = watched->moments;
  json["moments"] = {
      {"rank", watched->rank},
      {"window_seconds", watched->window_seconds},
      {"seconds", column(moments, [](const GpuMoment& m) { return six_digits(m.seconds); })},
      {"sm_clock_mhz", column(moments, [](const GpuMoment& m) { return m.sm_clock_mhz; })},
      {"memory_clock_mhz", column(moments, [](const GpuMoment& m) { return m.memory_clock_mhz; })},
      {"temperature_celsius",
       column(moments, [](const GpuMoment& m) { return six_digits(m.temperature_celsius); })},
      {"power_watts", column(moments, [](const GpuMoment& m) { return six_digits(m.power_watts); })},
      {"throttled", column(moments, [](const GpuMoment& m) { return m.throttled; })}};
  return json;
}

Json pairs(const NamedTexts& texts) {
  return column(texts, [](const auto& text) { return Json::array({text.first, text.second}); });
}

// Members that only run folders have.
void add_measured(const ReportRun& run, Json& json) {
  json["device_name"] = run.device_name;
  if (run.speeds)
    json["speeds"] = {{"mean", run.speeds->mean},
                      {"median", run.speeds->median},
                      {"min", run.speeds->min},
                      {"max", run.speeds->max}};
  json["steps"] = to_json(*run.steps);
  if (run.histogram) json["histogram"] = to_json(*run.histogram);
  json["exposed_communication_seconds"] = run.exposed_communication_seconds;
  json["data_wait_seconds"] = run.data_wait_seconds;
  json["first_loss"] = or_null(run.first_loss);
  json["last_loss"] = or_null(run.last_loss);
  json["joules_per_image"] = or_null(run.joules_per_image);
  json["rank_window_seconds"] = rounded(run.rank_window_seconds);
  json["ranks"] = column(run.ranks, [](const RankRecord& rank) { return to_json(rank); });
  if (!run.gpus.empty()) json["gpus"] = gpus_json(run.gpus);
  json["memory_bytes"] = column(run.memory_bytes, [](const auto& entry) {
    return Json::array({entry.first, entry.second});
  });
  json["config"] = pairs(run.config);
  json["environment"] = pairs(run.environment);
  json["checks"] = pairs(run.checks);
}

}  // namespace

Json to_json(const Configuration& c) {
  return {{"framework", c.framework},
          {"model", c.model},
          {"precision", c.precision},
          {"device", c.device},
          {"data", c.data},
          {"batch_per_device", c.batch_per_device},
          {"nodes", c.nodes},
          {"devices_per_node", c.devices_per_node},
          {"image_size", c.image_size},
          {"head", c.head},
          {"classes", c.classes},
          {"options", c.options},
          {"settings", c.settings}};
}

Json to_json(const ReportRun& run, Names& names) {
  Json json{{"label", run.label},
            {"origin", run.origin},
            {"configuration", to_json(run.configuration)},
            {"configuration_text", configuration_text(run.configuration)},
            {"images_per_second", run.images_per_second}};
  if (run.steps) add_measured(run, json);
  if (run.memory) json["memory"] = to_json(*run.memory, names);
  if (run.profile) json["profile"] = to_json(*run.profile, names);
  if (run.trace) json["trace"] = to_json(*run.trace, names);
  return json;
}

}  // namespace plumb
