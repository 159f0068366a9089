#include "results/simulation/prediction_text.h"

#include <algorithm>
#include <cmath>

#include "base/paths.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"

namespace plumb {
namespace {

constexpr double kBytesPerMiB = 1 << 20;

// Five digits, but no exponent: "36.712", "94110".
std::string throughput_text(double images_per_second) {
  return images_per_second < 1e5 ? fmt::format("{:.5g}", images_per_second)
                                 : fmt::format("{:.0f}", images_per_second);
}

std::string milliseconds_cell(double seconds) {
  return fmt::format("{:.2f}", seconds * kMilliseconds);
}

std::string link_text(const Link& link) {
  return fmt::format("{:.4g} GB/s, {:.3g} µs a hop", link.bytes_per_second / kGiga,
                     link.latency_seconds * kMicrosecondsInSecond);
}

std::string links_text(const Links& links) {
  std::string text =
      fmt::format("links: {}, {}, up to {} each", shortened(printable(links.comm), 20),
                  counted(links.hosts.size(), "host"), counted(devices_per_host(links), "device"));
  if (links.within_host) text += "; within a host " + link_text(*links.within_host);
  if (links.between_hosts) text += "; between hosts " + link_text(*links.between_hosts);
  if (!links.pairs.empty()) text += "; " + counted(links.pairs.size(), "pair") + " of hosts";
  if (!links.allreduces.empty())
    text += "; times corrected by " + counted(links.allreduces.size(), "measured allreduce");
  return text;
}

// The links have its bandwidth and latency.
std::string what_if_text(const WhatIf& what_if) {
  std::string text;
  if (what_if.changes_links()) append_part(text, "these links between hosts");
  if (what_if.bucket_mb) append_part(text, fmt::format("buckets of {:.4g} MiB", *what_if.bucket_mb));
  if (!what_if.reduce_dtype.empty()) append_part(text, "gradients sent as " + what_if.reduce_dtype);
  return text;
}

const MeasuredCase* measured_of(const ScalingBasis& basis, Layout layout) {
  return find_in(basis.measured, layout, &MeasuredCase::layout);
}

TextRow case_row(const ScalingBasis& basis, const PredictedCase& one) {
  TextRow row{one.layout.name() + (one.beyond_links ? " *" : ""),
              std::to_string(one.layout.devices()),
              throughput_text(one.images_per_second),
              throughput_text(one.low_images_per_second),
              throughput_text(one.high_images_per_second),
              percent_text(one.efficiency) + " %",
              milliseconds_cell(one.step_seconds),
              milliseconds_cell(one.exposed_seconds)};
  const MeasuredCase* measured = measured_of(basis, one.layout);
  row.push_back(measured ? throughput_text(measured->images_per_second) : "-");
  row.push_back(measured ? fmt::format("{:.3f}", measured->images_per_second / one.images_per_second) : "-");
  return row;
}

std::string cases_table(const ScalingBasis& basis, const ScalingPrediction& prediction) {
  std::vector<TextRow> rows{{"case", "devices", "images/s", "low", "high", "efficiency", "step ms",
                             "exposed ms", "measured", "ratio"}};
  for (const PredictedCase& one : prediction.cases) rows.push_back(case_row(basis, one));
  std::string text = padded_table(rows, "lr");
  if (std::ranges::any_of(prediction.cases, &PredictedCase::beyond_links))
    text += "* more than links.json has: by its slowest links\n";
  return text;
}

// The case whose buckets are shown: the largest one that was measured, else the largest.
const PredictedCase* shown_case(const ScalingBasis& basis, const ScalingPrediction& prediction) {
  const PredictedCase* shown = nullptr;
  for (const PredictedCase& one : prediction.cases)
    if (one.layout.devices() > 1 && measured_of(basis, one.layout)) shown = &one;
  if (!shown && !prediction.cases.empty() && prediction.cases.back().layout.devices() > 1)
    shown = &prediction.cases.back();
  return shown;
}

std::string buckets_table(const ScalingPrediction& prediction, const PredictedCase& shown) {
  std::vector<TextRow> rows{{"collective", "MiB", "ready ms", "start", "end", "exposed", "bus GB/s"}};
  for (std::size_t i = 0; i < shown.collectives.size(); ++i) {
    const StepCollective& collective = prediction.step.collectives[i];
    const SimulatedCollective& time = shown.collectives[i];
    rows.push_back(
        {shortened(printable(collective.name), 32), fmt::format("{:.2f}", collective.bytes / kBytesPerMiB),
         milliseconds_cell(time.ready), milliseconds_cell(time.start), milliseconds_cell(time.end),
         milliseconds_cell(time.exposed), fmt::format("{:.4g}", shown.bus_bytes_per_second[i] / kGiga)});
  }
  return fmt::format("\ncollectives of {}: ms since the step began\n", shown.layout.name()) +
         padded_table(rows, "lr", "  ");
}

std::string verdicts_text(const ScalingBasis& basis, const ScalingPrediction& prediction,
                          const std::vector<Note>& verdicts) {
  if (prediction.what_if.any()) return "";
  std::string text = "\n";
  for (const Note& verdict : verdicts)
    text += hanging_lines(verdict.kind + " " + note_text(verdict), "  ", "");
  if (!verdicts.empty()) return text;
  const bool judged = std::ranges::any_of(prediction.cases, [&](const PredictedCase& one) {
    return one.layout.devices() > 1 && measured_of(basis, one.layout);
  });
  return text + (judged ? "OK: what was measured is as fast as predicted over these links.\n"
                        : "None of these cases was run on several devices, so there is nothing to judge.\n");
}

// The members of plumbline.scaling/1.
struct CaseThroughput {
  double predicted = 0, low = 0, high = 0, bound = 0;
  static void fields(auto& self, auto&& each) {
    each("predicted", self.predicted), each("low", self.low), each("high", self.high);
    each("bound", self.bound, Field{"that no schedule exceeds"});
  }
};

struct MeasuredThroughput {
  double images_per_second = 0;
  int runs = 0;
  double ratio = 0;
  static void fields(auto& self, auto&& each) {
    each("images_per_second", self.images_per_second, Field{"median"}), each("runs", self.runs);
    each("ratio", self.ratio, Field{"to the predicted one"});
  }
};

struct PredictedCollective {
  std::string name;
  std::int64_t bytes = 0;
  SimulatedCollective time;
  double bus_bytes_per_second = 0;
  static void fields(auto& self, auto&& each) {
    each("name", self.name), each("bytes", self.bytes);
    each("ready_seconds", self.time.ready, Field{"since the step began"});
    each("start_seconds", self.time.start), each("end_seconds", self.time.end);
    each("exposed_seconds", self.time.exposed);
    each("bus_bytes_per_second", self.bus_bytes_per_second);
  }
};

struct CaseReport {
  PredictedCase predicted;
  std::optional<MeasuredThroughput> measured;
  std::vector<PredictedCollective> collectives;
  static void fields(auto& self, auto&& each) {
    const PredictedCase& one = self.predicted;
    each("case", one.layout.name()), each("nodes", one.layout.nodes);
    each("devices_per_node", one.layout.devices_per_node), each("devices", one.layout.devices());
    each("images_per_second", CaseThroughput{one.images_per_second, one.low_images_per_second,
                                             one.high_images_per_second, one.bound_images_per_second});
    each("efficiency", one.efficiency), each("step_seconds", one.step_seconds);
    each("exposed_communication_seconds", one.exposed_seconds);
    each("jitter_seconds", one.jitter_seconds);
    each("beyond_links", one.beyond_links, Field{"more hosts or devices than the links have"});
    each("slowest_pair", one.slowest_pair, Field{"of hosts, in the ring"});
    each("measured", self.measured, Field{.null_if_nothing = true});
    each("collectives", self.collectives);
  }
};

struct CaseVerdict {
  std::string kind, of_case, reason;
  static void fields(auto& self, auto&& each) {
    each("kind", self.kind, Field{"REJECT, EXPLAIN, FLAG or LINKS"});
    each("case", self.of_case), each("reason", self.reason);
  }
};

CaseReport case_report(const ScalingBasis& basis, const StepModel& step, const PredictedCase& one) {
  CaseReport report{.predicted = one};
  if (const MeasuredCase* measured = measured_of(basis, one.layout))
    report.measured = {measured->images_per_second, measured->runs,
                       measured->images_per_second / one.images_per_second};
  for (std::size_t i = 0; one.layout.devices() > 1 && i < one.collectives.size(); ++i)
    report.collectives.push_back({step.collectives[i].name, std::llround(step.collectives[i].bytes),
                                  one.collectives[i], one.bus_bytes_per_second[i]});
  return report;
}

struct PredictionReport {
  ScalingBasis basis;
  ScalingPrediction prediction;
  std::vector<Note> verdicts;
  static void fields(auto& self, auto&& each) {
    const ScalingBasis& basis = self.basis;
    const ScalingPrediction& prediction = self.prediction;
    each("configuration", configuration_text(basis.configuration));
    each("run", basis.run, Field{"the profiled one's folder"});
    each("step_alone_seconds", basis.step.seconds());
    each("step_deviation_seconds", basis.deviation_seconds);
    each("links", prediction.links), each("what_if", prediction.what_if);
    each("cases", mapped(prediction.cases,
                         [&](const PredictedCase& one) { return case_report(basis, prediction.step, one); }));
    each("verdicts", mapped(self.verdicts, [](const Note& one) {
           return CaseVerdict{one.kind, one.subject, one.text};
         }));
    each("notes", prediction.notes);
  }
};

}  // namespace

std::string prediction_text(const ScalingBasis& basis, const ScalingPrediction& prediction,
                            const std::vector<Note>& verdicts) {
  std::string text = hanging_lines(configuration_text(basis.configuration), "  ", "");
  text += hanging_lines(fmt::format("step alone: {} ms, from {}", milliseconds_cell(basis.step.seconds()),
                                    printable(basis.run)),
                        "  ", "");
  text += hanging_lines(links_text(prediction.links), "  ", "");
  if (prediction.what_if.any())
    text += hanging_lines("what if: " + what_if_text(prediction.what_if), "  ", "");
  text += "\n" + cases_table(basis, prediction);
  if (const PredictedCase* shown = shown_case(basis, prediction)) text += buckets_table(prediction, *shown);
  return text + verdicts_text(basis, prediction, verdicts);
}

Json prediction_json(const ScalingBasis& basis, const ScalingPrediction& prediction,
                     const std::vector<Note>& verdicts) {
  return document_json(kScalingSchema, PredictionReport{basis, prediction, verdicts});
}

const Document kScalingDocument =
    document_of<PredictionReport>(kScalingSchema, "Throughput over given links: plumbline scaling --json.");

}  // namespace plumb
