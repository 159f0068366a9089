// One iteration of trace.json: when every step of every lane began and ended.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "base/error.h"
#include "results/record/object_reader.h"
#include "results/report/run_parts.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMicroseconds = 1e-6;
constexpr const char* kIterationsLane = "iterations";

// The threads of the file by their number, the one of whole iterations among them.
std::map<std::int64_t, std::string> read_names(const Json& events, const std::string& origin,
                                               RunTrace& trace) {
  std::map<std::int64_t, std::string> lanes;
  for (const Json& event : events) {
    const ObjectReader reader(event, origin, "traceEvents[]");
    if (reader.text("ph") != "M") continue;
    const std::string what = reader.text("name");
    if (what != "process_name" && what != "thread_name") continue;
    const Json& arguments = reader.object("args");
    const std::string name = ObjectReader(arguments, origin, "args").text("name");
    if (what == "process_name")
      trace.process = name;
    else
      lanes[reader.integer("tid", 0)] = name;
  }
  return lanes;
}

struct Iteration {
  int number = 0;
  double begin_us = 0, length_us = 0;
};

// null reads as NaN, which has no place on a time line.
bool has_times(const ObjectReader& reader) {
  return std::isfinite(reader.number("ts")) && std::isfinite(reader.number("dur"));
}

// The iteration of median length; the earlier of two.
std::optional<Iteration> typical(std::vector<Iteration> iterations) {
  if (iterations.empty()) return {};
  std::ranges::stable_sort(iterations, {}, &Iteration::length_us);
  return iterations[(iterations.size() - 1) / 2];
}

std::vector<Iteration> read_iterations(const Json& events, std::int64_t thread, const std::string& origin) {
  std::vector<Iteration> iterations;
  for (const Json& event : events) {
    const ObjectReader reader(event, origin, "traceEvents[]");
    if (reader.text("ph") != "X" || reader.integer("tid", 0) != thread || !has_times(reader)) continue;
    iterations.push_back({static_cast<int>(iterations.size()), reader.number("ts"), reader.number("dur")});
  }
  return iterations;
}

// What stands in args.iteration, or begins within the iteration where that is missing.
bool belongs(const Json& event, const ObjectReader& reader, const Iteration& iteration) {
  if (const auto args = event.find("args"); args != event.end() && args->is_object())
    if (const auto number = args->find("iteration"); number != args->end() && number->is_number_integer())
      return number->get<std::int64_t>() == iteration.number;
  const double begin = reader.number("ts") - iteration.begin_us;
  return begin >= 0 && begin < iteration.length_us;
}

void keep_longest(RunTrace& trace, std::size_t most_spans) {
  auto& spans = trace.spans;
  if (spans.size() > most_spans) {
    trace.left_out = static_cast<int>(spans.size() - most_spans);
    std::ranges::stable_sort(spans, std::greater(), &TraceSpan::seconds);
    spans.resize(most_spans);
  }
  std::ranges::stable_sort(spans, {},
                           [](const TraceSpan& span) { return std::pair(span.lane, span.begin_seconds); });
}

}  // namespace

RunTrace run_trace(const Json& json, const std::string& origin, std::size_t most_spans) {
  const Json& events = ObjectReader(json, origin).list("traceEvents");
  RunTrace trace;
  const std::map<std::int64_t, std::string> threads = read_names(events, origin, trace);
  std::int64_t iterations_thread = -1;
  std::map<std::int64_t, std::size_t> lane_of;
  for (const auto& [thread, name] : threads)
    if (name == kIterationsLane)
      iterations_thread = thread;
    else {
      lane_of[thread] = trace.lanes.size();
      trace.lanes.push_back(name);
    }
  const auto chosen = typical(read_iterations(events, iterations_thread, origin));
  if (!chosen)
    throw Error(ExitCode::bad_data, "'" + origin + "' has no whole iteration; run with --trace again");
  trace.iteration = chosen->number;
  for (const Json& event : events) {
    const ObjectReader reader(event, origin, "traceEvents[]");
    if (reader.text("ph") != "X") continue;
    const auto lane = lane_of.find(reader.integer("tid", 0));
    if (lane == lane_of.end() || !has_times(reader) || !belongs(event, reader, *chosen)) continue;
    const std::string phase = event.contains("cat") ? reader.text("cat") : "";
    trace.spans.push_back({reader.text("name"), phase, lane->second,
                           (reader.number("ts") - chosen->begin_us) * kMicroseconds,
                           reader.number("dur") * kMicroseconds});
  }
  keep_longest(trace, most_spans);
  return trace;
}

}  // namespace plumb
