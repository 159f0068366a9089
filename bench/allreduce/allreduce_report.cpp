#include "bench/allreduce/allreduce_report.h"

#include <algorithm>

#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"

namespace plumb {
namespace {

constexpr std::size_t kMessageColumns = 17;  // "bucket0.allreduce"

std::string option_name_of(DType dtype) {
  constexpr const char* kNames[]{"fp32", "fp16", "bf16", "int32", "int64", "uint8"};
  return kNames[static_cast<std::size_t>(dtype)];
}

std::string microseconds(double seconds) {
  const double value = seconds * kMicrosecondsInSecond;
  return fmt::format("{:.{}f}", value, value < 1e5 ? 1 : 0);
}
std::string gigabytes(double bytes_per_second) {
  return fmt::format("{:.3f}", bytes_per_second / kGiga);
}

std::string headline(const AllreduceReport& report) {
  const AllreduceOptions& options = report.options;
  const std::string what = options.replay.model ? fmt::format("messages of {}", options.replay.text)
                                                : fmt::format("{} of {}", collective_name(options.collective),
                                                              option_name_of(options.dtype));
  std::string text = fmt::format("{} over {}{}, {} on {}, {} timed of {}\n", what, options.comm,
                                 report.captured ? " in CUDA graphs" : "", counted(report.world_size, "rank"),
                                 counted(report.nodes, "host"), options.iterations,
                                 counted(options.iterations + options.warmup, "iteration"));
  if (report.world_size == 1)
    text += "one rank sends nothing: times are those of the calls and copies, bus bandwidth is 0\n";
  return text;
}

std::string mebibytes(std::int64_t bytes) {
  return fmt::format("{:.3f}", static_cast<double>(bytes) / (1 << 20));
}

// min, median, max over iterations; "fastest": the fastest rank's median.
std::string results_table(const AllreduceReport& report) {
  const bool has_names = report.options.replay.model != nullptr;
  std::vector<TextRow> rows{{has_names ? "message" : "bytes", has_names ? "MiB" : "place", "min", "median",
                             "max", "fastest", "slowest", "algbw", "busbw", "wrong"}};
  for (const MeasuredTransfer& one : report.results)
    rows.push_back({has_names ? shortened(one.name, kMessageColumns) : std::to_string(one.bytes),
                    has_names      ? mebibytes(one.bytes)
                    : one.in_place ? "in"
                                   : "out",
                    microseconds(one.times.iterations.min), microseconds(one.times.iterations.median),
                    microseconds(one.times.iterations.max), microseconds(one.times.ranks.min),
                    std::to_string(one.times.slowest_rank), gigabytes(one.algbw_bytes_per_second()),
                    gigabytes(one.busbw_bytes_per_second()), std::to_string(one.wrong_elements)});
  return "times in us over iterations, each as long as its slowest rank; the fastest rank's median, and the\n"
         "slowest rank; bandwidths in GB/s\n\n" +
         padded_table(rows, has_names ? "lr" : "rlr", "  ");
}

std::string best_text(const AllreduceReport& report) {
  const auto& results = report.results;
  const auto best =
      std::ranges::max_element(results, {}, [](const auto& one) { return one.busbw_bytes_per_second(); });
  if (best == results.end() || best->busbw_bytes_per_second() <= 0) return "";
  const std::string ring = report.ring
                               ? fmt::format("; a ring of single messages reached {} before and {} after",
                                             gigabytes(report.ring->before), gigabytes(report.ring->after))
                               : "";
  return fmt::format("\nlargest bus bandwidth: {} GB/s at {} bytes{}\n",
                     gigabytes(best->busbw_bytes_per_second()), best->bytes, ring);
}

std::string replay_text(const MeasuredReplay& replay) {
  const ValueRange& seconds = replay.alone_seconds;
  return fmt::format("\na step sends {}, {:.1f} MB\n  {:<32}{:>12.3f} ms   {:.3f} to {:.3f}\n",
                     counted(replay.collectives, "message"), replay.bytes / 1e6,
                     "all of them, nothing computed", seconds.median * kMilliseconds,
                     seconds.min * kMilliseconds, seconds.max * kMilliseconds);
}

}  // namespace

std::string to_text(const AllreduceReport& report) {
  std::string warnings;
  for (const std::string& warning : report.warnings) warnings += "warning: " + warning + "\n";
  if (report.pairs) return to_text(*report.pairs) + warnings;
  std::string text = headline(report) + results_table(report);
  text += report.replay ? replay_text(*report.replay) : best_text(report);
  return text + warnings;
}

Links links_of(const AllreduceReport& report, const std::vector<LinkHost>& hosts) {
  if (report.pairs) return report.pairs->links;
  Links links{.comm = report.options.comm, .hosts = hosts};
  if (report.probed) links.pairs = report.probed->pairs;
  for (const MeasuredTransfer& one : report.results)
    if (one.in_place && one.times.iterations.min > 0)
      links.allreduces.push_back({.hosts = report.nodes,
                                  .devices_per_host = report.devices_per_node,
                                  .bytes = one.bytes,
                                  .seconds = one.times.iterations});
  return links;
}

}  // namespace plumb
