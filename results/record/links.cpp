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
constexpr int kMostHosts = 1 << 20, kMostDevices = 1024;
constexpr double kLongestAllreduceSeconds = 1e6;

LinkJson link_json(const Link& link) {
  return {{"latency_seconds", link.latency_seconds}, {"bytes_per_second", link.bytes_per_second}};
}

LinkJson optional_link_json(const std::optional<Link>& link) {
  return link ? link_json(*link) : LinkJson(nullptr);
}

double latency_of(const ObjectReader& reader, const char* key) {
  const double seconds = reader.number(key);
  if (!(seconds >= 0 && seconds <= kLongestLatencySeconds))
    reader.fail(key, fmt::format("is {}, no time between 0 and {} s", reader.any(key).dump(),
                                 kLongestLatencySeconds));
  return seconds;
}

Link link_of(const ObjectReader& reader) {
  const Link link{latency_of(reader, "latency_seconds"), reader.number("bytes_per_second")};
  if (!(link.bytes_per_second > 0 && link.bytes_per_second <= kMostBytesPerSecond))
    reader.fail("bytes_per_second", fmt::format("is {}, no bandwidth above 0 and up to {:g} bytes/s",
                                                reader.any("bytes_per_second").dump(), kMostBytesPerSecond));
  return link;
}

// Reads links.json's objects and lists, each with its place for messages.
class LinksReader {
 public:
  LinksReader(const LinkJson& json, const std::string& origin)
      : json_(json), origin_(origin), file_(json, origin, "", kLinksSchema) {}

  Links read() const {
    if (file_.text("schema") != kLinksSchema)
      file_.fail("schema", fmt::format("is {}", file_.any("schema").dump()));
    Links links{.comm = file_.text("comm"), .hosts = hosts()};
    if (is_there("start_seconds")) links.start_seconds = latency_of(file_, "start_seconds");
    links.within_host = optional_link("within_host");
    links.between_hosts = optional_link("between_hosts");
    each("pairs", [&](const ObjectReader& reader) { links.pairs.push_back(pair(reader, links.hosts)); });
    each("allreduce", [&](const ObjectReader& reader) { links.allreduces.push_back(allreduce(reader)); });
    if (!links.within_host && !links.between_hosts && links.pairs.empty() && links.allreduces.empty())
      throw Error(ExitCode::bad_data,
                  "{} holds neither a link nor an allreduce, from which nothing can be predicted; measure "
                  "again with bench_allreduce --out",
                  origin_);
    return links;
  }

 private:
  bool is_there(const char* key) const { return json_.contains(key) && !json_[key].is_null(); }

  template <typename Read>
  void each(const char* key, Read read) const {
    if (!is_there(key)) return;
    std::size_t index = 0;
    for (const LinkJson& entry : file_.list(key))
      read(ObjectReader(entry, origin_, fmt::format("{}[{}]", key, index++), kLinksSchema));
  }

  std::vector<LinkHost> hosts() const {
    std::vector<LinkHost> hosts;
    std::set<std::string> names;
    file_.list("hosts");
    each("hosts", [&](const ObjectReader& reader) {
      hosts.push_back({reader.text("name"), static_cast<int>(reader.integer("devices", 1, kMostDevices))});
      const std::string& name = hosts.back().name;
      if (name.empty()) reader.fail("name", "is empty");
      if (!names.insert(name).second)
        reader.fail("name", fmt::format("is '{}', which another host is called too", printable(name)));
    });
    if (hosts.empty()) file_.fail("hosts", "is empty");
    return hosts;
  }

  std::optional<Link> optional_link(const char* key) const {
    if (!is_there(key)) return {};
    return link_of({file_.object(key), origin_, key, kLinksSchema});
  }

  static HostPair pair(const ObjectReader& reader, const std::vector<LinkHost>& hosts) {
    HostPair pair{reader.text("first"), reader.text("second"), link_of(reader)};
    for (const auto& [key, name] : {std::pair("first", pair.first), std::pair("second", pair.second)})
      if (std::ranges::find(hosts, name, &LinkHost::name) == hosts.end())
        reader.fail(key, fmt::format("is '{}', none of its hosts", printable(name)));
    if (pair.first == pair.second) reader.fail("second", "is the first host again");
    return pair;
  }

  MeasuredAllreduce allreduce(const ObjectReader& reader) const {
    MeasuredAllreduce measured{
        .hosts = static_cast<int>(reader.integer("hosts", 1, kMostHosts)),
        .devices_per_host = static_cast<int>(reader.integer("devices_per_host", 1, kMostDevices)),
        .bytes = reader.integer("bytes", 1, std::int64_t{1} << 50)};
    if (measured.hosts == 1 && measured.devices_per_host == 1)
      reader.fail("hosts", "is 1 with one device, which sends nothing");
    fields::read(reader, "seconds", measured.seconds, {});
    const ValueRange& seconds = measured.seconds;
    if (!(seconds.min > 0 && seconds.min <= seconds.median && seconds.median <= seconds.max &&
          seconds.max <= kLongestAllreduceSeconds))
      reader.fail("seconds", "isn't min, median and max above 0, in this order");
    return measured;
  }

  const LinkJson& json_;
  const std::string& origin_;
  ObjectReader file_;
};

}  // namespace

LinkJson to_json(const Links& links) {
  LinkJson json{{"schema", kLinksSchema},
                {"comm", links.comm},
                {"hosts", LinkJson::array()},
                {"start_seconds", links.start_seconds},
                {"within_host", optional_link_json(links.within_host)},
                {"between_hosts", optional_link_json(links.between_hosts)},
                {"pairs", LinkJson::array()},
                {"allreduce", LinkJson::array()}};
  for (const LinkHost& host : links.hosts)
    json["hosts"].push_back({{"name", host.name}, {"devices", host.devices}});
  for (const HostPair& pair : links.pairs) {
    LinkJson entry{{"first", pair.first}, {"second", pair.second}};
    entry.update(link_json(pair.link));
    json["pairs"].push_back(std::move(entry));
  }
  for (const MeasuredAllreduce& measured : links.allreduces)
    json["allreduce"].push_back({{"hosts", measured.hosts},
                                 {"devices_per_host", measured.devices_per_host},
                                 {"bytes", measured.bytes},
                                 {"seconds", fields::written(measured.seconds)}});
  return json;
}

Links links_from_json(const LinkJson& json, const std::string& origin) {
  return LinksReader(json, origin).read();
}

void read_member(const ObjectReader& reader, const char* key, Links& links) {
  links = links_from_json(reader.object(key), reader.origin() + ", " + key);
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
