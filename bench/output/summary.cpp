#include <algorithm>
#include <cmath>

#include "base/console/print.h"
#include "base/text_table.h"
#include "base/units.h"
#include "bench/output/log_writer.h"
#include "bench/output/result_writer.h"
#include "results/analysis/configuration.h"
#include "results/anomalies/flags.h"
#include "results/published/published.h"
#include "results/record/gpu_name.h"
#include "results/scaling/slow_ranks.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr std::size_t kColumns = 80, kValueColumn = 26;

// Rows of a name and a value. Values stay within the table's columns: what doesn't fit goes on below.
class SummaryRows {
 public:
  template <typename... Values>
  void add(std::string_view name, fmt::format_string<Values...> value, Values&&... values) {
    const std::string text = fmt::format(value, std::forward<Values>(values)...);
    for (const std::string& line : wrapped_lines(text, kColumns - kValueColumn)) {
      text_ += fmt::format("  {:<{}}{}\n", name, kValueColumn - 2, line);
      name = "";
    }
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string headline(const RunRecord& record) {
  const std::string text =
      fmt::format("{} {}, batch {} per device, {}n{}g, {}{}{}", record.model, record.precision,
                  record.batch_per_device, record.nodes, record.devices_per_node, record.device,
                  record.device_name.empty() ? "" : ": ", record.device_name);
  std::string lines;
  for (const std::string& line : wrapped_lines(text, kColumns - 2))
    lines += (lines.empty() ? "" : "  ") + line + "\n";
  return lines;
}

// "102.23 MB per step at 0.11 GB/s bus bandwidth"
std::string sent_text(const RunRecord& record) {
  const std::string text = fmt::format("{:.2f} MB per step", record.sent_bytes_per_step / 1e6);
  if (!record.bus_bytes_per_second) return text + "; --profile times it";
  return text + fmt::format(" at {:.2f} GB/s bus bandwidth", *record.bus_bytes_per_second / kGiga);
}

// A run that isn't ok has no throughput, and its waits aren't known.
void add_timing(const RunRecord& record, SummaryRows& rows) {
  std::vector<double> window(record.window().begin(), record.window().end());
  if (window.empty()) return;
  std::ranges::sort(window);
  const bool ok = record.status == "ok";
  const double speed = record.images_per_second.mean;
  const auto step_at = [&](double share) {  // nearest rank
    return 1e3 *
           window[static_cast<std::size_t>(std::lround(share * static_cast<double>(window.size() - 1)))];
  };
  if (ok) {
    rows.add("images/s", "{:.2f}", speed);
    rows.add("images/s per device", "{:.2f}", speed / std::max(1, record.world_size));
  }
  rows.add("step time, median", "{:.3f} ms", 1e3 * median(window));
  rows.add("step time, spread", "{:.3f} to {:.3f} ms (10 % to 90 %),", step_at(0.1), step_at(0.9));
  rows.add("", "{:.3f} to {:.3f} ms in all", 1e3 * window.front(), 1e3 * window.back());
  if (!ok) return;
  const double mean_step = mean(window);  // waits are means, too
  const auto add_wait = [&](std::string_view name, double seconds, std::string_view whose = "") {
    rows.add(name, "{:.3f} ms per step ({:.1f} %){}", 1e3 * seconds, percent(seconds, mean_step), whose);
  };
  if (const std::vector<double> waits = rank_waits(record.ranks); waits.size() > 1) {
    const WaitParts parts = wait_parts(waits);
    add_wait("exposed communication", record.exposed_communication_seconds, " on rank 0");
    add_wait("  transferring", parts.transfer, " on every rank");
    add_wait("  for the slowest rank", parts.slowest_rank, " on the others");
  } else {
    add_wait("exposed communication", record.exposed_communication_seconds);
  }
  add_wait("waiting for data", record.data_wait_seconds);
  if (record.sent_bytes_per_step > 0) rows.add("sent per rank", "{}", sent_text(record));
}

// "INTERRUPTED by SIGINT after 12 of 120 iterations: no score"
void add_state(const RunRecord& record, SummaryRows& rows) {
  if (record.status == "ok") {
    rows.add("iterations", "{}, of which {} warm-up", record.iterations, record.warmup);
  } else if (record.failure.starts_with(kInterrupted)) {
    rows.add("INTERRUPTED", "{}: no score", record.failure.substr(kInterrupted.size()));
    if (record.world_size > 1 && record.failure.find("SIGTERM") != std::string::npos)
      rows.add("", "(sent by hand, or by the launcher because another rank failed: see its message)");
    rows.add("iterations", "{}, warm-up {}", record.step_seconds.size(), record.warmup);
  } else {
    rows.add("FAILED", "{}", record.failure);
    rows.add("iterations", "{}, of which {} warm-up", record.iterations, record.warmup);
  }
}

// The lowest and highest of the collectives' medians over the ranks.
std::string bus_bandwidth_text(const std::vector<CollectiveRecord>& collectives) {
  const auto speed_of = [](const CollectiveRecord& one) { return one.bus_bytes_per_second.median / kGiga; };
  const auto [slowest, fastest] = std::ranges::minmax_element(collectives, {}, speed_of);
  return fmt::format("{:.2f} to {:.2f} GB/s in {}, the slowest is {}", speed_of(*slowest), speed_of(*fastest),
                     counted(collectives.size(), "collective"), slowest->name);
}

std::string checks_text(const RunRecord& record) {
  std::string text;
  for (const auto& [name, outcome] : record.checks.items()) {
    const std::string word = !outcome.is_boolean() ? "skipped" : outcome.get<bool>() ? "yes" : "NO";
    append_part(text, fmt::format("{}: {}", name, word));
  }
  return text;
}

// "65536 at first, 16384 at last; 2 iterations skipped".
std::string loss_scale_text(const RunRecord& record) {
  return fmt::format("{} at first, {} at last; {} skipped", record.loss_scale.front(),
                     record.loss_scale.back(), counted(record.skipped_iterations, "iteration"));
}

// What Plumbline itself reached on such a device.
void add_reference(const RunRecord& record, const std::vector<ReferenceSpeed>& references,
                   SummaryRows& rows) {
  if (const ReferenceSpeed* reference = find_reference(references, configuration_of(record)))
    rows.add("reference", "{}", reference_text(*reference, record.images_per_second.mean));
}

// Published figures of the nearest configurations on a device of the same kind, and how those differ from
// this one.
void add_published(const RunRecord& record, SummaryRows& rows) {
  constexpr std::size_t kMostFrameworks = 3;
  constexpr int kSameProduct = 1;
  const Configuration own = configuration_of(record);
  std::string_view name = "published, nearest";
  for (const NearestPublished& near : nearest_among(published_results(), own, kMostFrameworks)) {
    if (gpu_distance(own.device, near.result.configuration.device) > kSameProduct) continue;
    const std::string differing = other_sides_text(near.differences);
    const double speed = near.result.images_per_second;
    const int devices = near.result.configuration.devices();
    const std::string each =
        devices == own.devices() ? "" : fmt::format(" ({:.2f} per device)", speed / devices);
    rows.add(name, "{:.2f} images/s{}, {}{}{}", speed, each, framework_family(near.result.framework),
             differing.empty() ? "" : ": ", differing);
    name = "";
  }
}

}  // namespace

std::string summary_table(const RunRecord& record, const std::vector<ReferenceSpeed>& references) {
  SummaryRows rows;
  add_state(record, rows);
  add_timing(record, rows);
  if (!record.collectives.empty()) rows.add("bus bandwidth", "{}", bus_bandwidth_text(record.collectives));
  if (const auto peak = record.memory_bytes.find("peak"); peak != record.memory_bytes.end())
    rows.add("peak memory", "{:.1f} MiB", static_cast<double>(peak->second) / (1 << 20));
  if (record.head_parameters > 0)
    rows.add("class centers", "{}, {} parameters", head_options(record.config), record.head_parameters);
  if (!record.loss.empty())
    rows.add("loss, first and last", "{:.5f}, {:.5f}", record.loss.front(), record.loss.back());
  if (!record.loss_scale.empty()) rows.add("loss scale", "{}", loss_scale_text(record));
  if (record.energy_joules_per_image)
    rows.add("energy per image", "{:.3f} J", *record.energy_joules_per_image);
  for (const GpuRecord& gpu : record.gpus)
    if (const std::string text = throttling_text(gpu); !text.empty()) rows.add("THROTTLED", "{}", text);
  for (const Note& flag : run_flags(record))
    if (flag.kind != "throttling" && flag.kind != "failed_check") rows.add("note", "{}", flag.text);
  if (!record.checks.empty()) rows.add("checks", "{}", checks_text(record));
  for (const std::string& file : record.log_files) rows.add("log", "{}", file);
  if (record.status == "ok" && record.ranks_per_gpu == 1) {
    add_reference(record, references, rows);
    add_published(record, rows);
  }
  return headline(record) + rows.text();
}

// Texts from outside (file names, hosts) may not be UTF-8; they must not cost us the result.
void print_result(const RunRecord& record, const std::vector<ReferenceSpeed>& references, bool as_json) {
  print_text(as_json ? json_text(to_json(record)) : summary_table(record, references));
}

}  // namespace plumb
