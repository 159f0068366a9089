#include "results/record/links.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/paths.h"
#include "base/shallow_json.h"
#include "base/whole_file.h"
#include "results/record/schema.h"

namespace plumb {
namespace {

// Beyond these a number is a slip: a satellite's round trip takes under a second, and no host has a hundred
// NVLink 5 GPUs.
constexpr double kLongestLatencySeconds = 60, kMostBytesPerSecond = 1e15;
constexpr double kLongestAllreduceSeconds = 1e6;

void check_latency(double seconds, const char* key, const ObjectReader& reader) {
  if (!(seconds >= 0 && seconds <= kLongestLatencySeconds))
    reader.fail(key, fmt::format("expected a time between 0 and {1} s, found {0}", reader.any(key).dump(),
                                 kLongestLatencySeconds));
}

}  // namespace

void Link::check(const ObjectReader& reader) const {
  check_latency(latency_seconds, "latency_seconds", reader);
  if (!(bytes_per_second > 0 && bytes_per_second <= kMostBytesPerSecond))
    reader.fail("bytes_per_second",
                fmt::format("expected a bandwidth above 0 and up to {1:g} bytes/s, found {0}",
                            reader.any("bytes_per_second").dump(), kMostBytesPerSecond));
}

void MeasuredAllreduce::check(const ObjectReader& reader) const {
  if (hosts == 1 && devices_per_host == 1) reader.fail("hosts", "one device sends nothing");
  if (!(seconds.min > 0 && seconds.min <= seconds.median && seconds.median <= seconds.max &&
        seconds.max <= kLongestAllreduceSeconds))
    reader.fail("seconds", "expected min, median and max above 0, in this order");
}

void Links::check(const ObjectReader& reader) const {
  if (schema != kLinksSchema)
    reader.fail("schema", fmt::format("expected '{1}', found '{0}'", printable(schema), kLinksSchema));
  check_latency(start_seconds, "start_seconds", reader);
  if (hosts.empty()) reader.fail("hosts", "expected a host");
  std::set<std::string> names;
  reader.for_each("hosts", [&](const ObjectReader& host) {
    const std::string name = host.text("name");
    if (name.empty()) host.fail("name", "expected a name");
    if (!names.insert(name).second)
      host.fail("name", fmt::format("'{}' is the name of another host", printable(name)));
  });
  if (!pairs.empty())
    reader.for_each("pairs", [&](const ObjectReader& pair) {
      for (const char* key : {"first", "second"})
        if (!names.contains(pair.text(key)))
          pair.fail(key, fmt::format("'{}' is not one of its hosts", printable(pair.text(key))));
      if (pair.text("first") == pair.text("second")) pair.fail("second", "it is the first host again");
    });
  if (!within_host && !between_hosts && pairs.empty() && allreduces.empty())
    throw Error(ExitCode::bad_data,
                "{} has neither a link nor an allreduce; measure again with bench_allreduce --output",
                reader.origin());
}

bool keep_better(Link& link, const Link& again) {
  constexpr double kGain = 1.1;
  const bool gained = again.bytes_per_second > kGain * link.bytes_per_second;
  link.bytes_per_second = std::max(link.bytes_per_second, again.bytes_per_second);
  link.latency_seconds = std::min(link.latency_seconds, again.latency_seconds);
  return gained;
}

bool keep_better_pairs(Links& links, const Links& again) {
  bool gained = false;
  for (HostPair& pair : links.pairs)
    for (const HostPair& other : again.pairs) {
      if (pair.first != other.first || pair.second != other.second) continue;
      gained = keep_better(pair.link, other.link) || gained;
    }
  return gained;
}

Json to_json(const Links& links) {
  return fields::written(links);
}

const Document kLinksDocument =
    document_of<Links>(kLinksSchema, "Latency and bandwidth of links between hosts and devices.");

Links links_from_json(const Json& json, const std::string& origin) {
  return record_of<Links>(json, origin, kLinksSchema);
}

Links read_links(const fs::path& file) {
  const std::string text =
      read_whole_file(file, {.remedy = fmt::format("pass a {}, or the output of nccl-tests", kLinksFile)});
  const std::string name = fmt::format("file '{}'", printable(file.string()));
  if (is_nccl_tests_table(text)) return links_from_nccl_tests_table(text, name);
  const Json json = parse_shallow_json(text);
  if (!json.is_object())
    throw Error(ExitCode::bad_data,
                "{}: expected a links.json or an output of nccl-tests; measure with bench_allreduce --output",
                name);
  if (is_nccl_tests_json(json)) return links_from_nccl_tests_json(json, name);
  if (value_or<std::string>(json, "schema").starts_with(kResultSchemaPrefix)) {
    if (!json.contains("links"))
      throw Error(ExitCode::bad_data,
                  "{} has no links, as its run was on one host or with --no-probe; pass a links.json of "
                  "bench_allreduce --output",
                  name);
    return links_from_json(ObjectReader(json, name).object("links"), name);
  }
  return links_from_json(json, name);
}

}  // namespace plumb
