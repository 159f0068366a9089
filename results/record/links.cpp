#include "results/record/links.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/paths.h"
#include "base/shallow_json.h"
#include "results/record/record_text.h"
#include "results/record/schema.h"

namespace plumb {
namespace {

using LinkJson = nlohmann::ordered_json;

// Beyond these a number is a slip: a satellite's round trip takes under a second, and no host has a hundred
// NVLink 5 GPUs.
constexpr double kLongestLatencySeconds = 60, kMostBytesPerSecond = 1e15;
constexpr double kLongestAllreduceSeconds = 1e6;

// What single members can't say. `at`: the record's place in the file, for messages.
void check_link(const ObjectReader& file, const std::string& at, const Link& link) {
  if (!(link.latency_seconds >= 0 && link.latency_seconds <= kLongestLatencySeconds))
    file.fail(at + ".latency_seconds",
              fmt::format("is {}, no time between 0 and {} s", link.latency_seconds, kLongestLatencySeconds));
  if (!(link.bytes_per_second > 0 && link.bytes_per_second <= kMostBytesPerSecond))
    file.fail(at + ".bytes_per_second", fmt::format("is {}, no bandwidth above 0 and up to {:g} bytes/s",
                                                    link.bytes_per_second, kMostBytesPerSecond));
}

void check_allreduce(const ObjectReader& file, const std::string& at, const MeasuredAllreduce& measured) {
  const ValueRange& seconds = measured.seconds;
  if (measured.hosts == 1 && measured.devices_per_host == 1)
    file.fail(at + ".hosts", "is 1 with one device, which sends nothing");
  if (!(seconds.min > 0 && seconds.min <= seconds.median && seconds.median <= seconds.max &&
        seconds.max <= kLongestAllreduceSeconds))
    file.fail(at + ".seconds", "isn't min, median and max above 0, in this order");
}

void check_hosts(const ObjectReader& file, const Links& links) {
  if (links.hosts.empty()) file.fail("hosts", "is empty");
  std::set<std::string> names;
  for (std::size_t i = 0; i < links.hosts.size(); ++i) {
    const std::string& name = links.hosts[i].name;
    if (name.empty()) file.fail(fmt::format("hosts[{}].name", i), "is empty");
    if (!names.insert(name).second)
      file.fail(fmt::format("hosts[{}].name", i),
                fmt::format("is '{}', which another host is called too", printable(name)));
  }
  for (std::size_t i = 0; i < links.pairs.size(); ++i) {
    const HostPair& pair = links.pairs[i];
    for (const auto& [key, name] : {std::pair("first", pair.first), std::pair("second", pair.second)})
      if (!names.contains(name))
        file.fail(fmt::format("pairs[{}].{}", i, key),
                  fmt::format("is '{}', none of its hosts", printable(name)));
    if (pair.first == pair.second) file.fail(fmt::format("pairs[{}].second", i), "is the first host again");
  }
}

}  // namespace

LinkJson to_json(const Links& links) {
  return fields::written(links);
}

LinkJson links_schema() {
  return json_schema<Links>(kLinksSchema, "Latency and bandwidth of links between hosts and devices.");
}

void Links::check(const ObjectReader& reader) const {
  if (schema != kLinksSchema) reader.fail("schema", fmt::format("is '{}'", printable(schema)));
  check_hosts(reader, *this);
  if (!(start_seconds >= 0 && start_seconds <= kLongestLatencySeconds))
    reader.fail("start_seconds",
                fmt::format("is {}, no time between 0 and {} s", start_seconds, kLongestLatencySeconds));
  if (within_host) check_link(reader, "within_host", *within_host);
  if (between_hosts) check_link(reader, "between_hosts", *between_hosts);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    check_link(reader, fmt::format("pairs[{}]", i), pairs[i].link);
  for (std::size_t i = 0; i < allreduces.size(); ++i)
    check_allreduce(reader, fmt::format("allreduce[{}]", i), allreduces[i]);
  if (!within_host && !between_hosts && pairs.empty() && allreduces.empty())
    throw Error(
        ExitCode::bad_data,
        "{} holds neither a link nor an allreduce, from which nothing can be predicted; measure again with "
        "bench_allreduce --out",
        reader.origin());
}

Links links_from_json(const LinkJson& json, const std::string& origin) {
  Links links;
  fields::read_all(ObjectReader(json, origin, "", kLinksSchema), links);
  return links;
}

Links read_links(const std::filesystem::path& file) {
  const LinkJson json = parse_shallow_json(read_record_text(file, kLinksFile));
  if (!json.is_object())
    throw Error(
        ExitCode::bad_data,
        "file '{}' is no links.json: it holds no JSON object; measure again with bench_allreduce --out",
        printable(file.string()));
  const std::string name = fmt::format("file '{}'", printable(file.string()));
  if (json.contains("schema") && json["schema"] == kResultSchema) {
    if (!json.contains("links"))
      throw Error(ExitCode::bad_data,
                  "{} has no links, as its run was on one host or with --no-probe; name a links.json of "
                  "bench_allreduce --out",
                  name);
    return links_from_json(ObjectReader(json, name).object("links"), name);
  }
  return links_from_json(json, name);
}

}  // namespace plumb
