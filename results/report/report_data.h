// The content of a report as plain data: the page and its tables are drawn from this.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "results/analysis/configuration.h"
#include "results/compare/samples.h"
#include "results/compare/scaling_loss.h"
#include "results/record/note.h"
#include "results/record/profile.h"
#include "results/record/schema.h"
#include "results/statistics/significance.h"

namespace plumb {

// One configuration on one number of devices, over all of its runs.
struct ReportPoint {
  std::string case_name;  // "4n8g"
  int devices = 0;
  std::vector<double> images_per_second;  // all devices together; one per run
  double median_images_per_second = 0;
  std::optional<Interval> interval;  // of the median
  // Against the median on one device of the same curve (of published curves: as published, where it is);
  // nothing where there is none. efficiency = speedup / devices.
  std::optional<double> speedup, efficiency;
  // Medians over the runs of each run's mean per step of its window, rank 0; nothing for logs.
  std::optional<double> step_seconds, exposed_communication_seconds, data_wait_seconds;
  std::optional<double> joules_per_image;         // median over the runs that have it
  std::optional<std::int64_t> peak_memory_bytes;  // the largest of any run, per device
  std::vector<std::size_t> runs;                  // indices into ReportData::runs; empty for published ones
  std::string source;                             // of published ones: file and line
  static void fields(auto& self, auto&& each) {
    each("case", self.case_name), each("devices", self.devices);
    each("images_per_second", self.images_per_second, Field{.written = !self.runs.empty()});
    each("median", self.median_images_per_second);
    each("interval", self.interval), each("speedup", self.speedup), each("efficiency", self.efficiency);
    each("step_seconds", self.step_seconds), each("data_wait_seconds", self.data_wait_seconds);
    each("exposed_communication_seconds", self.exposed_communication_seconds);
    each("joules_per_image", self.joules_per_image), each("peak_memory_bytes", self.peak_memory_bytes);
    each("runs", self.runs, Field{.written = !self.runs.empty()});
    each("source", self.source, Field{.written = !self.source.empty()});
  }
};

// Points that differ in the number of devices only.
struct ReportCurve {
  std::string label;                 // unique: "Plumbline fp16, batch 128"
  Configuration configuration;       // nodes and devices_per_node are 0
  std::vector<ReportPoint> points;   // by devices
  std::vector<ScalingLoss> scaling;  // own curves: from one point to the next, the largest loss first
  // Only own curves on several numbers of devices have one.
  std::optional<Note> answer;
  // By a profile and the links: throughput by devices, interval from the slowest to the fastest.
  std::vector<ReportPoint> predicted;
  // For published curves:
  std::string differences;   // from the own curve it is nearest to: "batch per device 128 against 256"
  bool same_device = false;  // as that curve's
  static void fields(auto& self, auto&& each) {
    each("label", self.label), each("points", self.points), each("answer", self.answer);
    each("predicted", self.predicted, Field{.written = !self.predicted.empty()});
    each("differences", self.differences);
    each("same_device", self.same_device, Field{.written = self.same_device});
  }
};

// One run folder or log.
struct ReportRun {
  std::string label;  // unique: "resnet50 fp16, batch 128, 4n8g, run 2"
  std::string origin;
  Configuration configuration;
  double images_per_second = 0;
  // All below: run folders only.
  std::optional<RunRecord> record;
  std::vector<ProfiledKind> kinds;  // of its profile.json; empty: it has none
  std::string trace;                // path of its trace.json; empty: it has none
};
// With the record as in result.json, but for its lists of steps, collectives and samples of GPUs.
Json to_json(const ReportRun& run);

struct ReportData {
  std::string title;
  std::string made_by;  // "plumbline 0.2.0 (c7e97064483e)"
  std::string created;  // "2026-01-31 12:00 UTC"; empty: not said
  // What is worth knowing first: scaling losses ("scaling"), verdicts against the prediction ("prediction"),
  // flags of runs and samples; subjects are the labels of curves, cases and runs.
  std::vector<Note> notes;
  std::string common;                  // what all own curves have: "Plumbline, synthetic"
  std::vector<ReportCurve> curves;     // own ones
  std::vector<ReportCurve> published;  // the nearest ones
  std::vector<ReportRun> runs;         // in the order of the points
  std::size_t shown_run = 0;           // that pictures of one run show until another is chosen
  std::vector<std::string> left_out;   // "path: why"
  Json verdict;                        // accept.json; null: of no accept
  Json links;                          // links.json, or as the runs probed them; null: neither
  static void fields(auto& self, auto&& each) {
    each("title", self.title), each("made_by", self.made_by), each("created", self.created);
    each("notes", self.notes), each("common", self.common), each("curves", self.curves);
    each("published", self.published);
    each("runs", self.runs), each("shown_run", self.shown_run), each("left_out", self.left_out);
    each("verdict", self.verdict, Field{.written = !self.verdict.is_null()});
    each("links", self.links, Field{.written = !self.links.is_null()});
  }
};

struct ReportOptions {
  std::string made_by, created;
  std::string links;                    // links.json to predict from; empty: what the runs themselves probed
  std::optional<double> expected_link;  // bytes/s that a link between hosts should reach
  Json verdict;                         // accept.json, whose runs these are; null: of none
};

// Reads profile.json of the runs too, and links.json; one that is there and can't be read, or is of other
// hosts or of another program, is named in left_out.
ReportData collect_report(const LoadedSamples& samples, const ReportOptions& options = {});

// The answers to the question whether it scales; a table of all points: configuration, case, runs, median,
// its interval, per device, speedup, efficiency, prediction; the notes, and the files that were left out.
// Neither date nor version of this program, so equal runs give equal text.
std::string report_markdown(const ReportData& data);
// One HTML file that needs nothing else.
std::string html_page(const ReportData& data);

}  // namespace plumb
