// Reads the output of all_reduce_perf of NVIDIA's nccl-tests.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/paths.h"
#include "base/text.h"
#include "results/record/links.h"

namespace plumb {
namespace {

// A line of the table.
struct Row {
  std::int64_t bytes = 0;
  ValueRange microseconds;
  double algorithm_bandwidth = 0, bus_bandwidth = 0, wrong = 0;
};

[[noreturn]] void refuse(const std::string& origin, const std::string& problem) {
  throw Error(ExitCode::bad_data, "{}, by nccl-tests: {}", origin, problem);
}

void add_rank(std::vector<LinkHost>& hosts, const std::string& host) {
  const auto known = std::ranges::find(hosts, host, &LinkHost::name);
  if (known == hosts.end())
    hosts.push_back({host, 1});
  else
    ++known->devices;
}

// An allreduce's busbw is its algbw times 2 (n - 1) / n (doc/PERFORMANCE.md), both printed with few digits.
bool is_allreduce(const Row& row, int ranks) {
  constexpr double kRounding = 0.02, kSmallestTold = 1;
  const double factor = 2.0 * (ranks - 1) / ranks;
  return row.algorithm_bandwidth < kSmallestTold ||
         std::abs(row.bus_bandwidth / row.algorithm_bandwidth / factor - 1) < kRounding;
}

Links links_of(std::vector<LinkHost> hosts, const std::vector<Row>& rows, const std::string& origin) {
  if (hosts.empty()) refuse(origin, "expected ranks; keep the lines '#  Rank  0 … on HOST'");
  const int devices = hosts.front().devices, ranks = devices * static_cast<int>(hosts.size());
  for (const LinkHost& host : hosts)
    if (host.devices != devices)
      refuse(origin, fmt::format("{} has {} ranks and {} has {}; start equally many on each host",
                                 printable(hosts.front().name), devices, printable(host.name), host.devices));
  if (ranks == 1) refuse(origin, "one rank sends nothing; start two or more");
  if (rows.empty()) refuse(origin, "expected a line with a time in place; let the test end");
  Links links{.comm = "nccl", .hosts = std::move(hosts)};
  for (const Row& row : rows) {
    if (!is_allreduce(row, ranks)) refuse(origin, "its busbw is not an allreduce's; run all_reduce_perf");
    if (row.wrong > 0)
      refuse(origin, fmt::format("{:g} elements of {} bytes are wrong; find out why before measuring",
                                 row.wrong, row.bytes));
    const ValueRange& time = row.microseconds;
    links.allreduces.push_back({.hosts = static_cast<int>(links.hosts.size()),
                                .devices_per_host = devices,
                                .bytes = row.bytes,
                                .seconds = {time.min * 1e-6, time.median * 1e-6, time.max * 1e-6}});
  }
  return links;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream words(line);
  return {std::istream_iterator<std::string>(words), {}};
}

// "#  Rank  0 Group  0 Pid 100 on node1 device  0 [0x18] NVIDIA H100". Of several groups, which ran side by
// side, the first counts, as the table is of it.
void read_rank(const std::vector<std::string>& words, std::vector<LinkHost>& hosts) {
  const auto on = std::ranges::find(words, "on"), group = std::ranges::find(words, "Group");
  if (words.size() < 4 || words[1] != "Rank" || words.end() - on < 2) return;
  if (words.end() - group >= 2 && group[1] != "0") return;
  add_rank(hosts, on[1]);
}

// Where a line's words are, by the header "# size count type redop root time algbw busbw #wrong time …".
struct Columns {
  std::size_t time = 0, algbw = 0, busbw = 0, wrong = 0;  // in place: the last of each name

  bool are_in(const std::vector<std::string>& words) const {
    return std::max({time, algbw, busbw, wrong}) < words.size();
  }
};

std::optional<Columns> columns_of(std::vector<std::string> words) {
  if (words.size() < 3 || words[0] != "#" || words[1] != "size") return std::nullopt;
  words.erase(words.begin());
  const auto last = [&](std::string_view name) {
    const auto found = std::find(words.rbegin(), words.rend(), name);
    return static_cast<std::size_t>(words.rend() - found) - 1;
  };
  Columns columns{last("time"), last("algbw"), last("busbw"), last("#wrong")};
  if (columns.wrong >= words.size()) columns.wrong = last("error");  // in older versions
  return columns.are_in(words) ? std::optional(columns) : std::nullopt;
}

std::optional<Row> row_of(const std::vector<std::string>& words, const Columns& columns) {
  if (!columns.are_in(words)) return std::nullopt;
  const auto number = [&](std::size_t column) { return std::strtod(words[column].c_str(), nullptr); };
  const double time = number(columns.time);
  const Row row{.bytes = std::strtoll(words[0].c_str(), nullptr, 10),
                .microseconds = {time, time, time},
                .algorithm_bandwidth = number(columns.algbw),
                .bus_bandwidth = number(columns.busbw),
                .wrong = number(columns.wrong)};  // "N/A": 0
  return row.bytes > 0 && time > 0 && std::isfinite(time) ? std::optional(row) : std::nullopt;
}

Row row_of(const ObjectReader& result) {
  const ObjectReader in_place = result.inside("in_place");
  const double time = in_place.number("time");
  Row row{.bytes = result.integer("size", 1),
          .microseconds = {time, time, time},
          .algorithm_bandwidth = in_place.number("alg_bw"),
          .bus_bandwidth = in_place.number("bus_bw"),
          .wrong = in_place.any("nwrong").is_number() ? in_place.number("nwrong") : 0};
  if (result.has("in_place_per_iter")) {
    const ObjectReader times = result.inside("in_place_per_iter");
    row.microseconds = {times.number("min_us"), times.number("p50_us"), times.number("max_us")};
  }
  const ValueRange& range = row.microseconds;
  if (!(range.min > 0 && range.min <= range.median && range.median <= range.max && std::isfinite(range.max)))
    in_place.fail("time", "expected a time");
  return row;
}

}  // namespace

bool is_nccl_tests_table(std::string_view text) {
  return text.find("algbw") != text.npos && text.find("busbw") != text.npos && !text.starts_with('{');
}

bool is_nccl_tests_json(const Json& json) {
  return json.contains("nccl_version") && json.contains("results") && json.contains("config");
}

Links links_from_nccl_tests_table(std::string_view table, const std::string& origin) {
  std::vector<LinkHost> hosts;
  std::vector<Row> rows;
  std::optional<Columns> columns;
  for (const std::string& line : split(std::string(table), '\n')) {
    const std::vector<std::string> words = words_of(line);
    if (line.starts_with('#'))
      read_rank(words, hosts);
    else if (const std::optional<Row> row = columns ? row_of(words, *columns) : std::nullopt)
      rows.push_back(*row);
    if (!columns) columns = columns_of(words);
  }
  return links_of(std::move(hosts), rows, origin);
}

Links links_from_nccl_tests_json(const Json& json, const std::string& origin) {
  const ObjectReader reader(json, origin, "", "an output of nccl-tests");
  std::vector<LinkHost> hosts;
  reader.inside("config").for_each("devices", [&](const ObjectReader& device) {
    if (device.integer("group", 0) == 0) add_rank(hosts, device.text("hostname"));
  });
  std::vector<Row> rows;
  reader.for_each("results", [&](const ObjectReader& result) {
    if (result.has("in_place") && !result.any("in_place").is_null()) rows.push_back(row_of(result));
  });
  return links_of(std::move(hosts), rows, origin);
}

}  // namespace plumb
