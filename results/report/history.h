// The history of runs: throughput over commits and dates, and at each point the gate's verdict against the
// runs before it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "results/analysis/configuration.h"
#include "results/compare/gate.h"
#include "results/compare/samples.h"

namespace plumb {

enum class TrendVerdict { first, too_few, regression, improvement, within_noise };

// The runs of one configuration at one commit, or on one day if their commit isn't known.
struct HistoryPoint {
  std::string commit;           // "deb69f95f825"; empty: not known
  std::int64_t started = 0;     // the first run's, seconds since 1970; 0: not known
  std::vector<RunFigure> runs;  // by start
  double median = 0, lowest = 0, highest = 0;

  TrendVerdict verdict = TrendVerdict::first;
  std::string finding;            // "4.2 % slower than the 14 runs before (p = 0.0003)"
  std::size_t baseline_runs = 0;  // that it was held against
  // Change of throughput against the baseline, by shift_ratio(): 0.03 is 3 % faster; empty without a
  // baseline.
  std::optional<double> change;
  // One-sided, in the direction of `change`, and the smallest change that these runs would have shown four
  // times in five; nothing for too few runs, or where they could show none.
  std::optional<double> p, smallest_shown;

  std::string began() const;  // "2026-01-31T13:45:00", local time; empty: not known
  static void fields(auto& self, auto&& each);
};

struct HistoryLine {
  std::string label;  // unique: "Plumbline fp16, batch 128, 1n8g"
  Configuration configuration;
  std::vector<HistoryPoint> points;  // by start
  static void fields(auto& self, auto&& each);
};

struct HistoryOptions {
  std::string made_by, created;
  GateCriteria criteria;
  std::size_t baseline_last = 14;  // runs before a point that it is held against
};

struct History : HistoryOptions {
  std::string title;                  // from what was run
  std::vector<HistoryLine> lines;     // one per configuration
  std::vector<std::string> left_out;  // "path: why"
  static void fields(auto& self, auto&& each);
};

// A point is a regression if the gate fails its runs against the `baseline_last` latest ones that began
// before it, an improvement if the gate would fail those against it.
History collect_history(LoadedSamples samples, const HistoryOptions& options = {});

// plumbline.history/1. Times are local, as the names of run folders are.
Json history_json(const History& history);
extern const Document kHistoryDocument;
// One HTML file that needs nothing else.
std::string html_page(const History& history);

}  // namespace plumb
