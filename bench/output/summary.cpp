#include "bench/output/summary.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/units.h"
#include "base/wrapped_lines.h"
#include "bench/output/log_case.h"
#include "results/analysis/configuration.h"
#include "results/anomalies/flags.h"
#include "results/published/published.h"
#include "results/published/published_text.h"

namespace plumb {
namespace {

template <typename... Values>
std::string row(std::string_view name, fmt::format_string<Values...> value, Values&&... values) {
  return fmt::format("  {:<23} {}\n", name, fmt::format(value, std::forward<Values>(values)...));
}

// Linear interpolation between the two nearest samples; `sorted` isn't empty.
double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const std::size_t below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::string headline(const RunRecord& record) {
  return fmt::format("{} {}, batch {} per device, {}n{}g, {}{}{}\n", record.model, record.precision,
                     record.batch_per_device, record.nodes, record.devices_per_node, record.device,
                     record.device_name.empty() ? "" : ": ", record.device_name);
}

std::string timing_rows(const RunRecord& record) {
  const std::size_t warmup = std::min(static_cast<std::size_t>(std::max<std::int64_t>(0, record.warmup)),
                                      record.step_seconds.size());
  std::vector<double> window(record.step_seconds.begin() + static_cast<std::ptrdiff_t>(warmup),
                             record.step_seconds.end());
  if (window.empty()) return "";
  std::ranges::sort(window);
  const double median = quantile(window, 0.5);
  return row("images/s", "{:.2f}", record.images_per_second.mean) +
         row("images/s per device", "{:.2f}",
             record.images_per_second.mean / std::max(1, record.world_size)) +
         row("step time, median", "{:.3f} ms", 1e3 * median) +
         row("step time, spread", "{:.3f} to {:.3f} ms (10 % to 90 %), {:.3f} to {:.3f} ms in all",
             1e3 * quantile(window, 0.1), 1e3 * quantile(window, 0.9), 1e3 * window.front(),
             1e3 * window.back()) +
         row("exposed communication", "{:.3f} ms per step ({:.1f} %)",
             1e3 * record.exposed_communication_seconds,
             percent(record.exposed_communication_seconds, median)) +
         row("waiting for data", "{:.3f} ms per step ({:.1f} %)", 1e3 * record.data_wait_seconds,
             percent(record.data_wait_seconds, median));
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

// "65536, 32768 from iteration 1, 16384 from iteration 2; 2 iterations skipped".
std::string loss_scale_text(const RunRecord& record) {
  constexpr std::size_t kMostShown = 4;
  std::vector<std::string> changes;
  for (std::size_t i = 0; i < record.loss_scale.size(); ++i)
    if (i > 0 && record.loss_scale[i] != record.loss_scale[i - 1])
      changes.push_back(fmt::format("{} from iteration {}", record.loss_scale[i], i));
  std::string text = fmt::format("{}", record.loss_scale.front());
  const std::size_t left_out = changes.size() > kMostShown ? changes.size() - kMostShown : 0;
  if (left_out > 0) text += fmt::format(", {} changes", left_out);
  for (std::size_t i = left_out; i < changes.size(); ++i) text += ", " + changes[i];
  return fmt::format("{}; {} skipped", text, counted(record.skipped_iterations, "iteration"));
}

// A value of several lines, each in the column of values, within 100 columns.
std::string wrapped_row(const std::string& name, const std::string& value) {
  std::string rows;
  for (const std::string& line : wrapped_lines(value, 100 - 26))
    rows += row(rows.empty() ? name : "", "{}", line);
  return rows;
}

// Published figures of the nearest configurations, and how those differ from this one.
std::string published_rows(const RunRecord& record) {
  constexpr std::size_t kMostFrameworks = 3;
  std::string rows;
  const Configuration own = configuration_of(record);
  for (const NearestPublished& near : nearest_published(own, kMostFrameworks)) {
    const std::string differing = other_sides_text(near.differences);
    const int devices = near.result.configuration.devices();
    const std::string each = devices == own.devices() ? ""
                                                      : fmt::format(" ({:.2f} per device)",
                                                                    near.result.images_per_second / devices);
    rows += wrapped_row(
        rows.empty() ? "published, nearest" : "",
        fmt::format("{:.2f} images/s{}, {}{}{}", near.result.images_per_second, each,
                    framework_family(near.result.framework), differing.empty() ? "" : ": ", differing));
  }
  return rows;
}

}  // namespace

std::string summary_table(const RunRecord& record) {
  std::string table = headline(record);
  if (record.status != "ok") table += row("FAILED", "{}", record.failure);
  table += row("iterations", "{}, of which {} warm-up", record.iterations, record.warmup);
  table += timing_rows(record);
  if (!record.collectives.empty())
    table += row("bus bandwidth", "{}", bus_bandwidth_text(record.collectives));
  if (const auto peak = record.memory_bytes.find("peak"); peak != record.memory_bytes.end())
    table += row("peak memory", "{:.1f} MiB", static_cast<double>(peak->second) / (1 << 20));
  if (record.head_parameters > 0)
    table += row("class centres", "{}, {} parameters", head_options(record.config), record.head_parameters);
  if (!record.loss.empty())
    table += row("loss, first and last", "{:.5f}, {:.5f}", record.loss.front(), record.loss.back());
  if (!record.loss_scale.empty()) table += row("loss scale", "{}", loss_scale_text(record));
  if (record.energy_joules_per_image)
    table += row("energy per image", "{:.3f} J", *record.energy_joules_per_image);
  for (const GpuRecord& gpu : record.gpus)
    if (const std::string text = throttling_text(gpu); !text.empty()) table += row("THROTTLED", "{}", text);
  for (const Flag& flag : run_flags(record))
    if (flag.kind != Flag::Kind::throttling && flag.kind != Flag::Kind::failed_check)
      table += wrapped_row("note", flag.sentence);
  if (!record.checks.empty()) table += row("checks", "{}", checks_text(record));
  for (const std::string& file : record.log_files) table += row("log", "{}", file);
  if (record.status == "ok") table += published_rows(record);
  return table;
}

// Texts from outside (file names, hosts) may not be UTF-8; they must not cost us the result.
std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void print_text(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    throw Error(ExitCode::io_error, "standard output can't be written: {}; make room and try again",
                std::strerror(errno));
}

void print_result(const RunRecord& record, bool as_json) {
  print_text(as_json ? json_text(to_json(record)) : summary_table(record));
}

}  // namespace plumb
