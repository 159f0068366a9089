// The report's data as the page's scripts read it: columns instead of lists of objects, texts kept once.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "base/units.h"
#include "results/report/bars.h"
#include "results/report/palette.h"
#include "results/report/report_data.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNanoseconds = 1e9;
constexpr std::size_t kMostMoments = 300;

// Texts that come again, such as the names of a program's instructions: each is kept once, and referred to by
// its index.
class Names {
 public:
  std::size_t operator()(const std::string& name) {
    const auto [entry, is_new] = indices_.emplace(name, indices_.size());
    if (is_new) list_.push_back(name);
    return entry->second;
  }
  // The parts of a text that has some in common with others, as "a/b.md:7" with "a/b.md:8". Joined they are
  // the text.
  Json parts(const std::string& text) {
    Json indices = Json::array();
    std::string part;
    for (const char letter : text) {
      const bool ends = letter == '/' || (letter == ' ' && (part.ends_with(',') || part.ends_with(';')));
      part += letter;
      if (ends) indices.push_back((*this)(std::exchange(part, "")));
    }
    if (!part.empty()) indices.push_back((*this)(part));
    return indices;
  }
  const Json& list() const { return list_; }

 private:
  std::map<std::string, std::size_t> indices_;
  Json list_ = Json::array();
};

// One column of a list of structs: a member of each, or what `value` and `change` make of it.
template <typename List, typename Value, typename Change = std::identity>
Json column(const List& list, Value value, Change&& change = {}) {
  Json values = Json::array();
  for (const auto& item : list) values.push_back(std::invoke(change, std::invoke(value, item)));
  return values;
}

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

double nanoseconds(double seconds) {
  return std::isfinite(seconds) ? std::round(seconds * kNanoseconds) / kNanoseconds : seconds;
}

// For columns, whose numbers are many: whole nanoseconds, which are shorter.
Json whole_nanoseconds(double seconds) {
  const double whole = std::round(seconds * kNanoseconds);
  return std::fabs(whole) < 0x1p53 ? Json(static_cast<std::int64_t>(whole)) : Json(whole);
}

// Six digits are more than a picture shows.
double six_digits(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double power = std::pow(10.0, 5 - std::floor(std::log10(std::fabs(value))));
  return std::round(value * power) / power;
}

double giga(double value) {
  return six_digits(value / kGiga);
}

Json to_json(const StepTimes& iterations) {
  Json json{{"iterations", iterations.iterations},
            {"warmup", iterations.warmup},
            {"per_entry", iterations.per_entry},
            {"median", column(iterations.median_seconds, whole_nanoseconds)}};
  if (iterations.per_entry > 1) json["min"] = column(iterations.min_seconds, whole_nanoseconds);
  if (iterations.per_entry > 1) json["max"] = column(iterations.max_seconds, whole_nanoseconds);
  return json;
}

Json to_json(const StepHistogram& histogram) {
  return {{"low", nanoseconds(histogram.low_seconds)},
          {"width", nanoseconds(histogram.width_seconds)},
          {"counts", histogram.counts},
          {"above", histogram.above},
          {"median", histogram.median_seconds},
          {"min", histogram.min_seconds},
          {"max", histogram.max_seconds},
          {"p1", or_null(histogram.p1_seconds)},
          {"p99", or_null(histogram.p99_seconds)}};
}

Json to_json(const InstructionSpan& span) {
  return {{"name", span.phase}, {"first", span.first_instruction}, {"last", span.last_instruction}};
}

Json to_json(const MemoryPicture& memory, Names& names) {
  const auto& blocks = memory.blocks;
  return {{"arena_bytes", memory.arena_bytes},
          {"steps", memory.instructions},
          {"left_out", memory.left_out},
          {"phases", column(memory.phases, [](const InstructionSpan& span) { return to_json(span); })},
          {"name", column(blocks, &MemoryBlock::name, names)},
          {"role", column(blocks, &MemoryBlock::role, names)},
          {"offset", column(blocks, &MemoryBlock::offset)},
          {"bytes", column(blocks, &MemoryBlock::bytes)},
          {"first", column(blocks, &MemoryBlock::first_instruction)},
          {"last", column(blocks, &MemoryBlock::last_instruction)},
          {"buffers", column(blocks, &MemoryBlock::buffers)}};
}

Json to_json(const ProfiledKind& kind) {
  return {{"name", kind.name},
          {"steps", kind.instructions},
          {"seconds", nanoseconds(kind.seconds)},
          {"roofline_seconds", nanoseconds(kind.roofline_seconds)}};
}

Json to_json(const RunProfile& profile, Names& names) {
  const auto& instructions = profile.instructions;
  return {{"device", profile.device},
          {"peak_flops_per_second", profile.peak_flops_per_second},
          {"peak_bytes_per_second", profile.peak_bytes_per_second},
          {"iteration_seconds", nanoseconds(profile.iteration_seconds)},
          {"busy_seconds", nanoseconds(profile.busy_seconds)},
          {"gap_seconds", nanoseconds(profile.gap_seconds)},
          {"roofline_seconds", nanoseconds(profile.roofline_seconds)},
          {"left_out", profile.left_out},
          {"kinds", column(profile.kinds, [](const ProfiledKind& kind) { return to_json(kind); })},
          {"name", column(instructions, &ProfiledInstruction::name, names)},
          {"kind", column(instructions, &ProfiledInstruction::kind, names)},
          {"bound_by", column(instructions, &ProfiledInstruction::bound_by, names)},
          {"seconds", column(instructions, &ProfiledInstruction::seconds, whole_nanoseconds)},
          {"roofline", column(instructions, &ProfiledInstruction::roofline_seconds, whole_nanoseconds)},
          {"gigaflops_per_second", column(instructions, &ProfiledInstruction::flops_per_second, giga)},
          {"gigabytes_per_second", column(instructions, &ProfiledInstruction::bytes_per_second, giga)}};
}

Json to_json(const RunTrace& trace, Names& names) {
  const auto& spans = trace.spans;
  return {{"process", trace.process},
          {"lanes", trace.lanes},
          {"iteration", trace.iteration},
          {"left_out", trace.left_out},
          {"name", column(spans, &TraceSpan::name, names)},
          {"phase", column(spans, &TraceSpan::phase, names)},
          {"lane", column(spans, &TraceSpan::lane)},
          {"begin", column(spans, &TraceSpan::begin_seconds, whole_nanoseconds)},
          {"seconds", column(spans, &TraceSpan::seconds, whole_nanoseconds)}};
}

// At most kMostMoments, every n-th of the run.
Json to_json(const std::vector<GpuMoment>& all) {
  const std::size_t every = (all.size() + kMostMoments - 1) / kMostMoments;
  std::vector<GpuMoment> moments;
  for (std::size_t i = 0; i < all.size(); i += every) moments.push_back(all[i]);
  return {{"seconds", column(moments, &GpuMoment::seconds, six_digits)},
          {"sm_clock_mhz", column(moments, &GpuMoment::sm_clock_mhz)},
          {"memory_clock_mhz", column(moments, &GpuMoment::memory_clock_mhz)},
          {"temperature_celsius", column(moments, &GpuMoment::temperature_celsius, six_digits)},
          {"power_watts", column(moments, &GpuMoment::power_watts, six_digits)},
          {"throttled", column(moments, &GpuMoment::throttled)}};
}

// Medians of every rank's GPU, and the moments of the one that has them.
Json to_json(const std::vector<GpuRecord>& gpus) {
  Json json{
      {"rank", column(gpus, &GpuRecord::rank)},
      {"sm_clock_mhz", column(gpus, &GpuRecord::sm_clock_mhz, &ValueRange::median)},
      {"power_watts", column(gpus, [](const GpuRecord& gpu) { return six_digits(gpu.power_watts.median); })},
      {"temperature_celsius", column(gpus, &GpuRecord::temperature_celsius, &ValueRange::median)},
      {"throttled_share", column(gpus, &GpuRecord::throttled_share, six_digits)}};
  const auto watched = std::ranges::find_if(gpus, [](const GpuRecord& gpu) { return !gpu.moments.empty(); });
  if (watched == gpus.end()) return json;
  json["moments"] = {{"rank", watched->rank}, {"window_seconds", watched->window_seconds}};
  json["moments"].update(to_json(watched->moments));
  return json;
}

// Members, the usual ones in the order in which a step needs them.
Json memory_json(const std::map<std::string, std::int64_t>& bytes) {
  std::vector<std::string> names{"parameters", "gradients", "optimizer", "activations",
                                 "workspace",  "planned",   "peak"};
  for (const auto& [name, size] : bytes)
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  Json json = Json::array();
  for (const std::string& name : names)
    if (const auto entry = bytes.find(name); entry != bytes.end())
      json.push_back(Json::array({name, entry->second}));
  return json;
}

// {"build": {"version": …}} becomes ["build.version", …], both as indices.
void add_texts(const Json& json, const std::string& prefix, Names& names, Json& texts) {
  for (const auto& [key, value] : json.items()) {
    if (value.is_object())
      add_texts(value, prefix + key + ".", names, texts);
    else
      texts.push_back(Json::array(
          {names(prefix + key),
           names(value.is_string() ? value.get<std::string>()
                                   : value.dump(-1, ' ', false, Json::error_handler_t::replace))}));
  }
}

Json texts_of(const Json& json, Names& names) {
  Json texts = Json::array();
  add_texts(json, "", names, texts);
  return texts;
}

Json to_json(const RankRecord& rank) {
  Json json{{"host", rank.host},
            {"exposed_communication_seconds", nanoseconds(rank.exposed_communication_seconds)}};
  if (rank.compute_seconds) json["compute_seconds"] = nanoseconds(*rank.compute_seconds);
  return json;
}

// Bandwidths: the lowest, the median and the highest of the ranks.
Json page_json(const CollectiveRecord& record) {
  const ValueRange& bus = record.bus_bytes_per_second;
  return {{"name", record.name},
          {"bytes", record.bytes},
          {"seconds", nanoseconds(record.seconds.median)},
          {"gigabytes_per_second", Json::array({giga(bus.min), giga(bus.median), giga(bus.max)})},
          {"slowest_rank", record.slowest_rank},
          {"last_rank", record.last_rank}};
}

// Members that only run folders have.
void add_measured(const ReportRun& run, const RunRecord& record, Names& names, Json& json) {
  const ImagesPerSecond& speeds = record.images_per_second;
  json["device_name"] = record.device_name;
  json["speeds"] = {
      {"mean", speeds.mean}, {"median", speeds.median}, {"min", speeds.min}, {"max", speeds.max}};
  json["steps"] = to_json(*run.steps);
  json["histogram"] = to_json(
      step_histogram(std::span(record.step_seconds).subspan(static_cast<std::size_t>(record.warmup))));
  json["exposed_communication_seconds"] = record.exposed_communication_seconds;
  json["data_wait_seconds"] = record.data_wait_seconds;
  if (record.modelled_exchange_seconds) {
    json["exchange_seconds"] = or_null(exchange_seconds(record));
    json["modelled_exchange_seconds"] = *record.modelled_exchange_seconds;
  }
  json["first_loss"] = record.loss.empty() ? Json(nullptr) : Json(record.loss.front());
  json["last_loss"] = record.loss.empty() ? Json(nullptr) : Json(record.loss.back());
  json["joules_per_image"] = or_null(record.energy_joules_per_image);
  json["rank_window_seconds"] = column(record.rank_window_seconds, nanoseconds);
  json["ranks"] = column(record.ranks, [](const RankRecord& rank) { return to_json(rank); });
  if (!record.collectives.empty())
    json["collectives"] =
        column(record.collectives, [](const CollectiveRecord& one) { return page_json(one); });
  if (!record.gpus.empty()) json["gpus"] = to_json(record.gpus);
  json["memory_bytes"] = memory_json(record.memory_bytes);
  json["config"] = texts_of(record.config, names);
  json["environment"] = texts_of(run.environment, names);
  json["checks"] = texts_of(record.checks, names);
}

Json to_json(const ReportRun& run, Names& names) {
  Json json{{"label", run.label},
            {"origin", run.origin},
            {"configuration_text", configuration_text(run.configuration)},
            {"images_per_second", run.images_per_second}};
  if (run.record) add_measured(run, *run.record, names, json);
  if (run.memory) json["memory"] = to_json(*run.memory, names);
  if (run.profile) json["profile"] = to_json(*run.profile, names);
  if (run.trace) json["trace"] = to_json(*run.trace, names);
  return json;
}

Json to_json(const ReportPoint& point) {
  Json json{{"case", point.case_name},
            {"devices", point.devices},
            {"median", point.median_images_per_second},
            {"speedup", or_null(point.speedup)},
            {"efficiency", or_null(point.efficiency)},
            {"images_per_second", point.images_per_second}};
  if (point.interval) {
    json["interval"] = {{"low", point.interval->low}, {"high", point.interval->high}};
    if (!is_only_range(*point.interval)) json["interval"]["confidence"] = point.interval->confidence;
  }
  json["step_seconds"] = or_null(point.step_seconds);
  json["exposed_communication_seconds"] = or_null(point.exposed_communication_seconds);
  json["data_wait_seconds"] = or_null(point.data_wait_seconds);
  json["joules_per_image"] = or_null(point.joules_per_image);
  json["peak_memory_bytes"] = or_null(point.peak_memory_bytes);
  json["runs"] = point.runs;
  return json;
}

// The page reads them as points.
Json predicted_json(const std::vector<ReportPoint>& points) {
  const auto low = [](const ReportPoint& point) { return point.interval->low; };
  const auto high = [](const ReportPoint& point) { return point.interval->high; };
  return {{"case", column(points, &ReportPoint::case_name)},
          {"devices", column(points, &ReportPoint::devices)},
          {"median", column(points, &ReportPoint::median_images_per_second, six_digits)},
          {"low", column(points, low, six_digits)},
          {"high", column(points, high, six_digits)},
          {"efficiency", column(points, [](const ReportPoint& point) {
             return six_digits(point.efficiency.value_or(0));
           })}};
}

Json to_json(const ReportCurve& curve) {
  Json json{{"label", curve.label},
            {"points", column(curve.points, [](const ReportPoint& point) { return to_json(point); })}};
  if (curve.answer)
    json["answer"] = {{"kind", name_of(curve.answer->kind)}, {"sentence", curve.answer->sentence}};
  if (!curve.predicted.empty()) json["predicted"] = predicted_json(curve.predicted);
  if (!curve.verdicts.empty()) json["verdicts"] = curve.verdicts;
  return json;
}

// There are hundreds of published curves. A point's source stands behind that of its curve; its efficiency is
// its speedup over its devices.
Json published_columns(const std::vector<ReportCurve>& curves, Names& names) {
  const auto parts = [&](const std::string& text) { return names.parts(text); };
  Json json{{"label", column(curves, &ReportCurve::label, parts)},
            {"selected", column(curves, [](const ReportCurve& curve) { return curve.selected ? 1 : 0; })},
            {"source", column(curves, &ReportCurve::source, parts)},
            {"differences", column(curves, &ReportCurve::differences, parts)},
            {"notes", column(curves, [&](const ReportCurve& curve) { return column(curve.notes, parts); })},
            {"points", column(curves, [](const ReportCurve& curve) { return curve.points.size(); })}};
  Json points{{"case", Json::array()},
              {"devices", Json::array()},
              {"median", Json::array()},
              {"speedup", Json::array()},
              {"source", Json::array()}};
  for (const ReportCurve& curve : curves)
    for (const ReportPoint& point : curve.points) {
      points["case"].push_back(names(point.case_name));
      points["devices"].push_back(point.devices);
      points["median"].push_back(point.median_images_per_second);
      points["speedup"].push_back(or_null(point.speedup));
      points["source"].push_back(
          parts(point.source.substr(std::min(curve.source.size(), point.source.size()))));
    }
  json["point"] = std::move(points);
  return json;
}

Json to_json(const ReportFlag& flag) {
  return {{"subject", flag.subject}, {"kind", flag.kind}, {"sentence", flag.sentence}};
}

// The losses of all own curves that are verdicts, each curve's largest first.
Json scaling_json(const std::vector<ReportCurve>& curves) {
  Json json = Json::array();
  for (const ReportCurve& curve : curves)
    for (const ScalingLoss& loss : curve.scaling) {
      if (!is_verdict(loss)) continue;
      Json entry = to_json(loss);
      entry["curve"] = curve.label;
      json.push_back(std::move(entry));
    }
  return json;
}

}  // namespace

Json to_json(const ReportData& data) {
  Names names;
  const auto json = [](const auto& item) { return to_json(item); };
  Json runs = column(data.runs, [&](const ReportRun& run) { return to_json(run, names); });
  return {{"title", data.title},
          {"made_by", data.made_by},
          {"created", data.created},
          {"scaling", scaling_json(data.curves)},
          {"flags", column(data.flags, json)},
          {"common", data.common},
          {"bars", column(data.bars, json)},
          {"bars_common", data.bars_common},
          {"curves", column(data.curves, json)},
          {"published", published_columns(data.published, names)},
          {"runs", std::move(runs)},
          {"left_out", data.left_out},
          {"shown_run", data.shown_run},
          {"palette", palette_json()},
          {"names", names.list()}};
}

}  // namespace plumb
