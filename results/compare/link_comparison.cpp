#include "results/compare/link_comparison.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "base/paths.h"
#include "base/shallow_json.h"
#include "base/text_table.h"
#include "base/units.h"
#include "base/whole_file.h"
#include "results/compare/compare.h"
#include "results/record/nccl_tests.h"
#include "results/record/schema.h"

namespace plumb {
namespace {

constexpr std::string_view kLinksPrefix = "plumbline.links/";

std::string layout_name(const MeasuredAllreduce& one) {
  return fmt::format("{}n{}g", one.hosts, one.devices_per_host);
}

double bus_bytes_per_second(const MeasuredAllreduce& one, double seconds) {
  return static_cast<double>(one.bytes) * bus_factor("allreduce", one.hosts * one.devices_per_host) / seconds;
}

// "2n1g, 8 to 1048576 bytes", of the first layout.
std::string extent_text(const LinkSet& set) {
  const std::vector<MeasuredAllreduce>& all = set.links.allreduces;
  if (all.empty()) return "no allreduces";
  const auto [least, most] = std::ranges::minmax_element(all, {}, &MeasuredAllreduce::bytes);
  return fmt::format("{}, {} to {} bytes", layout_name(all.front()), least->bytes, most->bytes);
}

LinkComparison compared(const LinkSet& first, const LinkSet& second) {
  LinkComparison result{.first = first.name, .second = second.name};
  for (const MeasuredAllreduce& one : first.links.allreduces) {
    const auto work_of = [](const MeasuredAllreduce& of) {
      return std::tie(of.hosts, of.devices_per_host, of.bytes);
    };
    if (const auto* other = find_in(second.links.allreduces, work_of(one), work_of))
      result.pairs.push_back({one, *other});
  }
  if (result.pairs.empty())
    throw Error(ExitCode::bad_data,
                "'{}' ({}) and '{}' ({}) have no allreduce in common; measure the same sizes on as many "
                "hosts and devices",
                printable(first.name), extent_text(first), printable(second.name), extent_text(second));
  result.only_first = first.links.allreduces.size() - result.pairs.size();
  result.only_second = second.links.allreduces.size() - result.pairs.size();
  return result;
}

std::string rate_text(const MeasuredAllreduce& one) {
  return fmt::format("{:.3f}", bus_bytes_per_second(one, one.seconds.median) / kGiga);
}

std::string time_text(const MeasuredAllreduce& one) {
  return fmt::format("{:.1f}", one.seconds.median * kMicrosecondsInSecond);
}

std::string table(const LinkComparison& comparison, const std::string& label) {
  const auto of = [&](const char* quantity) { return fmt::format("{} {}", label, quantity); };
  std::vector<TextRow> rows{
      {"layout", "bytes", "A us", of("us"), "A GB/s", of("GB/s"), fmt::format("{} / A", label), "range"}};
  for (const ComparedAllreduce& pair : comparison.pairs) {
    const ValueRange ratio = pair.ratio();
    rows.push_back({layout_name(pair.first), std::to_string(pair.first.bytes), time_text(pair.first),
                    time_text(pair.second), rate_text(pair.first), rate_text(pair.second),
                    fmt::format("{:.3f}", ratio.median),
                    fmt::format("{:.3f} to {:.3f}", ratio.min, ratio.max)});
  }
  return padded_table(rows, "lr");
}

std::string summary(const LinkComparison& comparison, const std::string& label) {
  const auto ratio_of = [](const ComparedAllreduce& pair) { return pair.ratio().median; };
  const std::vector<double> ratios = mapped(comparison.pairs, ratio_of);
  const auto worst = std::ranges::min_element(comparison.pairs, {}, ratio_of);
  std::string text = fmt::format(
      "{} against A: {:.3f} times the bus bandwidth (median of {}); least {:.3f}, at {} bytes\n", label,
      median(ratios), counted(ratios.size(), "allreduce"), worst->ratio().median, worst->first.bytes);
  if (comparison.only_first + comparison.only_second > 0)
    text += fmt::format("left out: {} that only A has, {} that only {} has\n", comparison.only_first,
                        comparison.only_second, label);
  return text;
}

struct Comparisons {
  std::vector<LinkComparison> comparisons;
  static void fields(auto& self, auto&& each) {
    each("comparisons", self.comparisons, Field{"the first file with each other one"});
  }
};

}  // namespace

ValueRange ComparedAllreduce::ratio() const {
  const ValueRange &a = first.seconds, &b = second.seconds;
  return {a.min / b.max, a.median / b.median, a.max / b.min};
}

void ComparedAllreduce::fields(auto& self, auto&& each) {
  const auto rate = [](const MeasuredAllreduce& one) {
    return bus_bytes_per_second(one, one.seconds.median);
  };
  each("hosts", self.first.hosts), each("devices_per_host", self.first.devices_per_host);
  each("bytes", self.first.bytes);
  each("first_seconds", self.first.seconds), each("second_seconds", self.second.seconds);
  each("first_busbw_bytes_per_second", rate(self.first), Field{"by the median"});
  each("second_busbw_bytes_per_second", rate(self.second), Field{"by the median"});
  each("ratio", self.ratio(), Field{"of bandwidths, second over first"});
}

void LinkComparison::fields(auto& self, auto&& each) {
  each("first", self.first), each("second", self.second), each("allreduces", self.pairs);
  each("only_first", self.only_first, Field{"allreduces that the second file hasn't"});
  each("only_second", self.only_second, Field{"allreduces that the first file hasn't"});
}

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

std::vector<LinkComparison> compare_links(std::span<const LinkSet> sets) {
  return mapped(sets.subspan(1), [&](const LinkSet& set) { return compared(sets.front(), set); });
}

std::string link_comparison_text(std::span<const LinkSet> sets, std::span<const LinkComparison> comparisons) {
  std::string text;
  for (std::size_t i = 0; i < sets.size(); ++i)
    text += fmt::format("{}: {} ({}, {})\n", label_of(i), sets[i].name, sets[i].links.comm,
                        counted(sets[i].links.hosts.size(), "host"));
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const std::string label = label_of(i + 1);
    text += "\n" + table(comparisons[i], label) + summary(comparisons[i], label);
  }
  return text + "GB/s: bus bandwidth by the median time; range: by each one's fastest and slowest time\n";
}

const Document kLinkComparisonDocument = document_of<Comparisons>(
    "plumbline.link_comparison/1", "Allreduces next to allreduces: plumbline compare --json of links.");

Json link_comparison_json(const std::vector<LinkComparison>& comparisons) {
  return document_json(kLinkComparisonDocument.name, Comparisons{comparisons});
}

}  // namespace plumb
