// Traces in a profiler's format, for tests.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace plumb {

using TraceJson = nlohmann::ordered_json;

// Times in microseconds.
inline TraceJson trace_event(const std::string& category, const std::string& name, double begin, double end,
                             int thread = 1, int id = 0) {
  TraceJson event{{"ph", "X"},     {"cat", category}, {"name", name},      {"pid", 7},
                  {"tid", thread}, {"ts", begin},     {"dur", end - begin}};
  if (id != 0) event["args"] = {{"stream", 7}, {"External id", id}, {"shape", {1, 2}}};
  return event;
}
inline TraceJson op(const std::string& name, double begin, double end, int thread = 1, int id = 0) {
  return trace_event("cpu_op", name, begin, end, thread, id);
}
inline TraceJson step_mark(int number, double begin, double end) {
  return trace_event("user_annotation", "ProfilerStep#" + std::to_string(number), begin, end);
}
inline TraceJson kernel(const std::string& name, double begin, double end, int launched_by = 0) {
  return trace_event("kernel", name, begin, end, 70, launched_by);
}
inline std::string trace_text(const std::vector<TraceJson>& events) {
  TraceJson trace{{"schemaVersion", 1}, {"deviceProperties", TraceJson::array({{{"id", 0}}})}};
  trace["traceEvents"] = events;
  trace["traceName"] = "x.json";
  return trace.dump();
}

}  // namespace plumb
