// A prediction as a table and as JSON.
#include <algorithm>

#include "base/paths.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "results/simulation/scaling_verdicts.h"

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

TextRow case_row(const PredictedCase& one) {
  return {one.layout.name() + (one.beyond_links ? " *" : ""),
          std::to_string(one.layout.devices()),
          throughput_text(one.images_per_second),
          throughput_text(one.low_images_per_second),
          throughput_text(one.high_images_per_second),
          percent_text(one.efficiency) + " %",
          milliseconds_cell(one.step_seconds),
          milliseconds_cell(one.exposed_seconds),
          one.measured ? throughput_text(one.measured->images_per_second) : "-",
          one.measured ? fmt::format("{:.3f}", one.measured->ratio) : "-"};
}

std::string cases_table(const std::vector<PredictedCase>& cases) {
  std::vector<TextRow> rows{{"case", "devices", "images/s", "low", "high", "efficiency", "step ms",
                             "exposed ms", "measured", "ratio"}};
  for (const PredictedCase& one : cases) rows.push_back(case_row(one));
  std::string text = padded_table(rows, "lr");
  if (std::ranges::any_of(cases, &PredictedCase::beyond_links))
    text += "* more than links.json has: by its slowest links\n";
  return text;
}

bool is_judged(const PredictedCase& one) {
  return one.layout.devices() > 1 && one.measured;
}

std::string buckets_table(const PredictedCase& shown) {
  std::vector<TextRow> rows{{"collective", "MiB", "ready ms", "start", "end", "exposed", "bus GB/s"}};
  for (const PredictedCollective& one : shown.collectives)
    rows.push_back({shortened(printable(one.name), 32),
                    fmt::format("{:.2f}", static_cast<double>(one.bytes) / kBytesPerMiB),
                    milliseconds_cell(one.time.ready), milliseconds_cell(one.time.start),
                    milliseconds_cell(one.time.end), milliseconds_cell(one.time.exposed),
                    fmt::format("{:.4g}", one.bus_bytes_per_second / kGiga)});
  return fmt::format("\ncollectives of {}: ms since the step began\n", shown.layout.name()) +
         padded_table(rows, "lr", "  ");
}

std::string verdicts_text(const JudgedScaling& scaling) {
  if (scaling.prediction.what_if.any()) return "";
  std::string text = "\n";
  for (const Note& verdict : scaling.verdicts)
    text += hanging_lines(verdict.kind + " " + note_text(verdict), "  ", "");
  if (!scaling.verdicts.empty()) return text;
  return text + (std::ranges::any_of(scaling.prediction.cases, is_judged)
                     ? "OK: what was measured is as fast as predicted over these links.\n"
                     : "None of these cases was run on several devices, so there is nothing to judge.\n");
}

// The members of plumbline.scaling/1 that are arranged in another way than in memory.
struct CaseThroughput {
  double predicted = 0, low = 0, high = 0, bound = 0;
  static void fields(auto& self, auto&& each) {
    each("predicted", self.predicted), each("low", self.low), each("high", self.high);
    each("bound", self.bound, Field{"that no schedule exceeds"});
  }
};

struct CaseVerdict {
  std::string kind, of_case, reason;
  static void fields(auto& self, auto&& each) {
    each("kind", self.kind, Field{"REJECT, EXPLAIN, FLAG or LINKS"});
    each("case", self.of_case), each("reason", self.reason);
  }
};

}  // namespace

void PredictedCollective::fields(auto& self, auto&& each) {
  each("name", self.name), each("bytes", self.bytes);
  each("ready_seconds", self.time.ready, Field{"since the step began"});
  each("start_seconds", self.time.start), each("end_seconds", self.time.end);
  each("exposed_seconds", self.time.exposed);
  each("bus_bytes_per_second", self.bus_bytes_per_second);
}

void MeasuredThroughput::fields(auto& self, auto&& each) {
  each("images_per_second", self.images_per_second, Field{"median"}), each("runs", self.runs);
  each("ratio", self.ratio, Field{"to the predicted one"});
}

void PredictedCase::fields(auto& self, auto&& each) {
  each("case", self.layout.name()), each("nodes", self.layout.nodes);
  each("devices_per_node", self.layout.devices_per_node), each("devices", self.layout.devices());
  each("images_per_second", CaseThroughput{self.images_per_second, self.low_images_per_second,
                                           self.high_images_per_second, self.bound_images_per_second});
  each("efficiency", self.efficiency), each("step_seconds", self.step_seconds);
  each("exposed_communication_seconds", self.exposed_seconds);
  each("jitter_seconds", self.jitter_seconds);
  each("beyond_links", self.beyond_links, Field{"more hosts or devices than the links have"});
  each("slowest_pair", self.slowest_pair, Field{"of hosts, in the ring"});
  each("measured", self.measured, Field{.null_if_nothing = true});
  each("collectives", self.collectives);
}

void JudgedScaling::fields(auto& self, auto&& each) {
  each("configuration", configuration_text(self.basis.configuration));
  each("run", self.basis.run, Field{"the profiled one's folder"});
  each("step_alone_seconds", self.basis.step.seconds());
  each("step_deviation_seconds", self.basis.deviation_seconds);
  each("links", self.prediction.links), each("what_if", self.prediction.what_if);
  each("cases", self.prediction.cases);
  each("verdicts", mapped(self.verdicts, [](const Note& one) {
         return CaseVerdict{one.kind, one.subject, one.text};
       }));
  each("notes", self.prediction.notes);
}

std::string prediction_text(const JudgedScaling& scaling) {
  const ScalingBasis& basis = scaling.basis;
  const ScalingPrediction& prediction = scaling.prediction;
  std::string text = hanging_lines(configuration_text(basis.configuration), "  ", "");
  text += hanging_lines(fmt::format("step alone: {} ms, from {}", milliseconds_cell(basis.step.seconds()),
                                    printable(basis.run)),
                        "  ", "");
  text += hanging_lines(links_text(prediction.links), "  ", "");
  if (prediction.what_if.any()) text += "what if: these links between hosts\n";
  text += "\n" + cases_table(prediction.cases);
  if (!prediction.cases.empty() && prediction.cases.back().layout.devices() > 1)
    text += buckets_table(prediction.cases.back());
  return text + verdicts_text(scaling);
}

Json prediction_json(const JudgedScaling& scaling) {
  return document_json(kScalingSchema, scaling);
}

const Document kScalingDocument =
    document_of<JudgedScaling>(kScalingSchema, "Throughput over given links: plumbline scaling --json.");

}  // namespace plumb
