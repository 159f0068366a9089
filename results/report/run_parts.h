// What a report shows of one run: its profile and step times, each small enough for a page.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/record/fields.h"

namespace plumb {

// profile.json: where the time of an iteration goes, beside the least it could take.
struct ProfiledInstruction {
  std::string name, kind, phase, lane;
  double seconds = 0, roofline_seconds = 0;
  double flops_per_second = 0, bytes_per_second = 0;  // achieved
  std::string bound_by;                               // "compute", "bandwidth", "latency", "-"
  std::string engine;                                 // of a convolution or product; empty: not named
  static void fields(auto& self, auto&& each) {
    each("name", self.name), each("kind", self.kind), each("phase", self.phase), each("lane", self.lane);
    each("seconds", self.seconds, Field{.finite = true});
    each("roofline_seconds", self.roofline_seconds, Field{.finite = true});
    each("flops_per_second", self.flops_per_second), each("bytes_per_second", self.bytes_per_second);
    each("bound_by", self.bound_by), each("engine", self.engine, Field{.written = !self.engine.empty()});
  }
};

struct ProfiledKind {
  std::string name;
  int instructions = 0;
  double seconds = 0, roofline_seconds = 0;
  static void fields(auto& self, auto&& each) {
    each("name", self.name), each("ops", self.instructions, Field{"", 0});
    each("seconds", self.seconds, Field{.finite = true});
    each("roofline_seconds", self.roofline_seconds, Field{.finite = true});
  }
};

struct RunProfile {
  std::string device;
  double peak_flops_per_second = 0, peak_bytes_per_second = 0;
  double iteration_seconds = 0, busy_seconds = 0, gap_seconds = 0, roofline_seconds = 0;
  std::vector<ProfiledKind> kinds;                // compute lane, the longest first
  std::vector<ProfiledInstruction> instructions;  // the longest first
  static void fields(auto& self, auto&& each) {
    each("device", self.device), each("peak_flops_per_second", self.peak_flops_per_second);
    each("peak_bytes_per_second", self.peak_bytes_per_second);
    each("iteration_seconds", self.iteration_seconds), each("busy_seconds", self.busy_seconds);
    each("gap_seconds", self.gap_seconds);
    each("roofline_seconds", self.roofline_seconds, Field{.finite = true});
    each("kinds", self.kinds), each("ops", self.instructions);
  }
};

// Throws Error(bad_data) that names `origin` and the key.
RunProfile run_profile(const Json& profile, const std::string& origin, std::size_t most_instructions = 500);

// Step times as a time line: `per_entry` iterations in a row make one entry; 1 unless the run is long.
struct StepTimes {
  std::int64_t iterations = 0, warmup = 0, per_entry = 1;
  std::vector<double> min_seconds, median_seconds, max_seconds;
  static void fields(auto& self, auto&& each) {
    each("iterations", self.iterations), each("warmup", self.warmup), each("per_entry", self.per_entry);
    each("min", self.min_seconds, Field{.written = self.per_entry > 1});
    each("median", self.median_seconds);
    each("max", self.max_seconds, Field{.written = self.per_entry > 1});
  }
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
  static void fields(auto& self, auto&& each) {
    each("low", self.low_seconds), each("width", self.width_seconds), each("counts", self.counts);
    each("above", self.above), each("median", self.median_seconds), each("min", self.min_seconds);
    each("max", self.max_seconds), each("p1", self.p1_seconds), each("p99", self.p99_seconds);
  }
};

StepTimes step_times(std::span<const double> step_seconds, std::int64_t warmup,
                     std::size_t most_entries = 500);

// Widths are 1, 2 or 5 times a power of ten, near Freedman and Diaconis' rule (2 IQR / cbrt(n)); 60 bins at
// most. `step_seconds`: of the window; times that aren't positive are not counted. Empty counts for none.
StepHistogram step_histogram(std::span<const double> step_seconds);

}  // namespace plumb
