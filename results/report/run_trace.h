// One iteration of trace.json: when every step of every lane began and ended.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace plumb {

struct TraceSpan {
  std::string name, phase;
  std::size_t lane = 0;  // index into RunTrace::lanes
  double begin_seconds = 0, seconds = 0;
};

struct RunTrace {
  std::string process;             // "rank 0: AMD EPYC, …"
  std::vector<std::string> lanes;  // "input", "compute", "communication"; those without spans too
  int iteration = 0;               // which one
  std::vector<TraceSpan> spans;    // by lane, then begin; time 0 is the iteration's begin
  int left_out = 0;                // the shortest ones beyond `most_spans`
};

// The iteration whose length is the median of those in the file. Throws Error(bad_data) that names `origin`.
RunTrace run_trace(const nlohmann::ordered_json& trace, const std::string& origin,
                   std::size_t most_spans = 800);

}  // namespace plumb
