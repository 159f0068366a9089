#include "bench/allreduce/allreduce_report.h"

#include <algorithm>

#include "base/machine/machine.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "comm/job.h"
#include "results/record/schema.h"

namespace plumb {
namespace {

constexpr double kSteadyShare = 0.8;  // of the faster of both rings
constexpr double kShareOfRing = 0.4;  // as the probe of runs calls a host slow
constexpr std::int64_t kLeastBytes = std::int64_t{1} << 20;
constexpr std::size_t kMessageColumns = 17;  // "bucket0.allreduce"

std::string option_name_of(DType dtype) {
  constexpr const char* kNames[]{"fp32", "fp16", "bf16"};
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
  std::string text =
      fmt::format("{} over {}, {} on {}, {} timed of {}\n", what, options.comm,
                  counted(report.world_size, "rank"), counted(report.nodes, "host"), options.iterations,
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

std::string pairs_text(const MeasuredPairs& measured) {
  std::vector<TextRow> rows{{"pair", "us one way", "GB/s"}};
  const auto row = [&](const std::string& name, const Link& link) {
    rows.push_back({name, fmt::format("{:.1f}", link.latency_seconds * kMicrosecondsInSecond),
                    gigabytes(link.bytes_per_second)});
  };
  for (const HostPair& pair : measured.links.pairs) row(pair.first + " - " + pair.second, pair.link);
  for (const MeasuredPairs::Ring& ring : measured.rings)
    rows.push_back(
        {fmt::format("ring {}", fmt::join(ring.places, " - ")), "", gigabytes(ring.bytes_per_second)});
  if (measured.links.within_host) row("within a host", *measured.links.within_host);
  return fmt::format("links between hosts, over MPI from host memory, both ways at once\n\n{}\n{}\n",
                     padded_table(rows, "lr", "  "), fmt::join(measured.findings, "\n"));
}

}  // namespace

std::string load_warning(const Job& job) {
  std::string mine;
  if (job.local_rank() == 0) {
    // The other ranks of this job wait for this one, and waiting takes a CPU.
    const double load = running_processes() - (job.local_size() - 1);
    if (load > kBusyLoadPerCpu * online_cpus())
      mine = fmt::format("{} (load {:.1f} on {})", job.host(), load, counted(online_cpus(), "CPU"));
  }
  std::string busy;
  for (const std::string& host : job.all_gather(mine))
    if (!host.empty()) append_part(busy, host);
  return busy.empty() ? "" : "other programs keep hosts busy, so times may be too long: " + busy;
}

std::optional<double> highest_busbw(std::span<const MeasuredTransfer> results) {
  std::optional<double> highest;
  for (const MeasuredTransfer& one : results)
    if (one.bytes >= kLeastBytes) highest = std::max(highest.value_or(0), one.busbw_bytes_per_second());
  return highest;
}

std::vector<std::string> ring_warnings(const ProbedRing& ring, std::optional<double> busbw) {
  std::vector<std::string> sentences;
  const auto [slower, faster] = std::minmax(ring.before, ring.after);
  if (slower < kSteadyShare * faster)
    sentences.push_back(fmt::format(
        "a ring of single messages reached {} before and {} after the collectives: something else "
        "used links or CPUs; measure again",
        gigabytes(ring.before) + " GB/s", gigabytes(ring.after) + " GB/s"));
  if (busbw && *busbw < kShareOfRing * slower)
    sentences.push_back(
        fmt::format("collectives reached at most {} GB/s, and a ring of single messages {} GB/s: other "
                    "programs or the sums take the time, not the links",
                    gigabytes(*busbw), gigabytes(slower)));
  return sentences;
}

double estimated_seconds(const AllreduceOptions& options, std::span<const std::uint64_t> sizes,
                         int world_size, const Link& link) {
  constexpr int kPlaces = 2, kChecks = 1;
  const double factor = bus_factor(name_of(options.collective), world_size);
  double seconds = 0;
  for (const std::uint64_t bytes : sizes)
    seconds += factor * static_cast<double>(bytes) / link.bytes_per_second +
               factor * world_size * link.latency_seconds;
  return seconds * kPlaces * (options.warmup + options.iterations + kChecks);
}

std::string to_text(const AllreduceReport& report) {
  std::string warnings;
  for (const std::string& warning : report.warnings) warnings += "warning: " + warning + "\n";
  if (report.pairs) return pairs_text(*report.pairs) + warnings;
  return headline(report) + results_table(report) + best_text(report) + warnings;
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
