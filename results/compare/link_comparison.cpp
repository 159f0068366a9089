// Measured allreduces beside allreduces: of bench_allreduce, of another day, of nccl-tests.
#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "base/paths.h"
#include "base/shallow_json.h"
#include "base/text_table.h"
#include "base/units.h"
#include "base/whole_file.h"
#include "results/compare/compare.h"
#include "results/record/links.h"
#include "results/record/schema.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr std::string_view kLinksPrefix = "plumbline.links/";

// "2n1g, 8 to 1048576 bytes", of the first layout.
std::string extent_text(const std::vector<MeasuredAllreduce>& all) {
  if (all.empty()) return "no allreduces";
  const auto [least, most] = std::ranges::minmax_element(all, {}, &MeasuredAllreduce::bytes);
  return fmt::format("{}, {} to {} bytes", all.front().layout().name(), least->bytes, most->bytes);
}

std::string rate_text(const MeasuredAllreduce& one) {
  const double sent = static_cast<double>(one.bytes) * bus_factor("allreduce", one.layout().devices());
  return fmt::format("{:.3f}", sent / one.seconds.median / kGiga);
}

std::string time_text(const MeasuredAllreduce& one) {
  return fmt::format("{:.1f}", one.seconds.median * kMicrosecondsInSecond);
}

}  // namespace

bool holds_links(const fs::path& file) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 26;
  try {
    const std::string text = read_whole_file(file, {.remedy = "", .most_bytes = kMostBytes});
    if (is_nccl_tests_table(text)) return true;
    const Json json = parse_shallow_json(text);
    return json.is_object() &&
           (is_nccl_tests_json(json) || value_or<std::string>(json, "schema").starts_with(kLinksPrefix));
  } catch (const Error&) {
    return false;
  }
}

std::string link_comparison_text(const std::string& first_file, const std::string& second_file) {
  const Links first = read_links(first_file), second = read_links(second_file);
  std::vector<TextRow> rows{{"layout", "bytes", "A us", "B us", "A GB/s", "B GB/s", "B / A", "range"}};
  std::vector<double> ratios;
  std::int64_t worst_bytes = 0;
  for (const MeasuredAllreduce& one : first.allreduces) {
    const auto work_of = [](const MeasuredAllreduce& of) {
      return std::tie(of.hosts, of.devices_per_host, of.bytes);
    };
    const auto* other = find_in(second.allreduces, work_of(one), work_of);
    if (!other) continue;
    const ValueRange &a = one.seconds, &b = other->seconds;
    const double ratio = a.median / b.median;
    if (ratios.empty() || ratio < std::ranges::min(ratios)) worst_bytes = one.bytes;
    ratios.push_back(ratio);
    rows.push_back({one.layout().name(), std::to_string(one.bytes), time_text(one), time_text(*other),
                    rate_text(one), rate_text(*other), fmt::format("{:.3f}", ratio),
                    fmt::format("{:.3f} to {:.3f}", a.min / b.max, a.max / b.min)});
  }
  if (ratios.empty())
    throw Error(ExitCode::bad_data,
                "'{}' ({}) and '{}' ({}) have no allreduce in common; measure the same sizes on as many "
                "hosts and devices",
                printable(first_file), extent_text(first.allreduces), printable(second_file),
                extent_text(second.allreduces));
  const auto heading = [](const char* label, const std::string& file, const Links& links) {
    return fmt::format("{}: {} ({}, {})\n", label, file, links.comm, counted(links.hosts.size(), "host"));
  };
  std::string text =
      heading("A", first_file, first) + heading("B", second_file, second) + "\n" + padded_table(rows, "lr");
  text +=
      fmt::format("B against A: {:.3f} times the bus bandwidth (median of {}); least {:.3f}, at {} bytes\n",
                  median(ratios), counted(ratios.size(), "allreduce"), std::ranges::min(ratios), worst_bytes);
  const std::size_t only_first = first.allreduces.size() - ratios.size();
  const std::size_t only_second = second.allreduces.size() - ratios.size();
  if (only_first + only_second > 0)
    text += fmt::format("left out: {} that only A has, {} that only B has\n", only_first, only_second);
  return text + "GB/s: bus bandwidth by the median time; range: by each one's fastest and slowest time\n";
}

}  // namespace plumb
