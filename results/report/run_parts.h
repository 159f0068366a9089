// What a report shows of one run: its profile, memory plan, trace and step times, each small enough for a
// page.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plumb {

// profile.json: where the time of an iteration goes, beside the least it could take.
struct ProfiledInstruction {
  std::string name, kind, phase, lane;
  double seconds = 0, roofline_seconds = 0;
  double flops_per_second = 0, bytes_per_second = 0;  // achieved
  std::string bound_by;                               // "compute", "bandwidth", "latency", "-"
  std::string engine;                                 // of a convolution or product; empty: not named
};

struct ProfiledKind {
  std::string name;
  int instructions = 0;
  double seconds = 0, roofline_seconds = 0;
};

struct RunProfile {
  std::string device;
  double peak_flops_per_second = 0, peak_bytes_per_second = 0;
  double iteration_seconds = 0, busy_seconds = 0, gap_seconds = 0, roofline_seconds = 0;
  std::vector<ProfiledKind> kinds;                // compute lane, the longest first
  std::vector<ProfiledInstruction> instructions;  // the longest first
  int left_out = 0;                               // shorter instructions beyond `most_instructions`
};

// Throws Error(bad_data) that names `origin` and the key.
RunProfile run_profile(const nlohmann::ordered_json& profile, const std::string& origin,
                       std::size_t most_instructions = 500);

// The memory plan as rectangles: bytes of the arena over the instructions of an iteration.
struct MemoryBlock {
  std::string name;  // the buffer's; of several together the largest one's
  std::string role;  // "parameter", "activation", …; "mixed" of several
  std::int64_t offset = 0, bytes = 0;
  int first_instruction = 0, last_instruction = 0;  // both included; what persists: all instructions
  int buffers = 1;                                  // how many small neighbours of one life it stands for
};

struct InstructionSpan {
  std::string phase;
  int first_instruction = 0, last_instruction = 0;
};

struct MemoryPicture {
  std::int64_t arena_bytes = 0;
  int instructions = 0;
  std::vector<InstructionSpan> phases;  // of the compute lane, in the order of instructions
  std::vector<MemoryBlock> blocks;      // by offset, then first instruction
  int left_out = 0;                     // buffers too small to be seen
};

// The picture of a program.json. Views are part of the buffer they look into. Throws Error(bad_data) that
// names `origin`.
MemoryPicture memory_picture(const nlohmann::ordered_json& program, const std::string& origin,
                             std::size_t most_blocks = 500);

// One iteration of trace.json: when every step of every lane began and ended.
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

// Step times as a time line: `per_entry` iterations in a row make one entry; 1 unless the run is long.
struct StepTimes {
  std::int64_t iterations = 0, warmup = 0, per_entry = 1;
  std::vector<double> min_seconds, median_seconds, max_seconds;
};

// Bin i: low + i * width up to (i + 1) * width seconds. Steps far above the rest don't stretch the bins, they
// are counted in `above`.
struct StepHistogram {
  double low_seconds = 0, width_seconds = 0;
  std::vector<std::int64_t> counts;
  std::int64_t above = 0;
  double median_seconds = 0, min_seconds = 0, max_seconds = 0;  // of all
  // First and 99th percentile, nearest rank; nothing for fewer than 100 steps, of which they would be
  // smallest and largest.
  std::optional<double> p1_seconds, p99_seconds;
};

StepTimes step_times(std::span<const double> step_seconds, std::int64_t warmup,
                     std::size_t most_entries = 500);

// Widths are 1, 2 or 5 times a power of ten, near Freedman and Diaconis' rule (2 IQR / cbrt(n)); 60 bins at
// most. `step_seconds`: of the window; times that aren't positive are not counted. Empty counts for none.
StepHistogram step_histogram(std::span<const double> step_seconds);

}  // namespace plumb
