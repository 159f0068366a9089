// links.json: latency and bandwidth of the links between hosts and between the devices of a host, as
// bench_allreduce --output measures them. `plumbline scaling` predicts from it.
// Its members are described in its JSON Schema.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "results/record/fields.h"
#include "results/statistics/statistics.h"

namespace plumb {

inline constexpr const char* kLinksSchema = "plumbline.links/1";
inline constexpr const char* kLinksFile = "links.json";

// One direction of a link; both directions may be in use at once, as a ring does.
struct Link {
  // From the start of a small message on one device to its arrival on the other: one hop of a ring.
  double latency_seconds = 0;
  // Measured with large messages. Between hosts: all interfaces of a host together. For a ring of allreduces
  // this is bus bandwidth, bytes / seconds * 2 (n - 1) / n.
  double bytes_per_second = 0;

  static void fields(auto& self, auto&& each) {
    each("latency_seconds", self.latency_seconds, Field{.about = "of a small message", .finite = true});
    each("bytes_per_second", self.bytes_per_second, Field{.about = "of large messages", .finite = true});
  }
  void check(const ObjectReader& reader) const;
};

struct LinkHost {
  std::string name;
  int devices = 1;  // ranks that took part

  static void fields(auto& self, auto&& each) {
    each("name", self.name);
    each("devices", self.devices, Field{"ranks that took part", 1, 1024});
  }
};

struct HostPair {
  std::string first, second;
  Link link;

  static void fields(auto& self, auto&& each) {
    each("first", self.first, Field{"a host's name"}), each("second", self.second);
    Link::fields(self.link, each);
  }
  void check(const ObjectReader& reader) const { link.check(reader); }
};

struct Layout {
  int nodes = 1, devices_per_node = 1;

  int devices() const { return nodes * devices_per_node; }
  std::string name() const { return fmt::format("{}n{}g", nodes, devices_per_node); }
  bool operator==(const Layout&) const = default;
};

struct MeasuredAllreduce {
  int hosts = 1, devices_per_host = 1;
  std::int64_t bytes = 0;
  ValueRange seconds;

  Layout layout() const { return {hosts, devices_per_host}; }
  static void fields(auto& self, auto&& each) {
    each("hosts", self.hosts, Field{"", 1, 1 << 20});
    each("devices_per_host", self.devices_per_host, Field{"", 1, 1024});
    each("bytes", self.bytes, Field{"", 1, std::int64_t{1} << 50});
    each("seconds", self.seconds, Field{"over iterations, each as long as its slowest rank"});
  }
  void check(const ObjectReader& reader) const;
};

struct Links {
  std::string schema = kLinksSchema;
  std::string comm;
  std::vector<LinkHost> hosts;
  double start_seconds = 0;
  std::optional<Link> within_host, between_hosts;
  std::vector<HostPair> pairs;
  std::vector<MeasuredAllreduce> allreduces;

  static void fields(auto& self, auto&& each) {
    each("schema", self.schema);
    each("comm", self.comm, Field{"what carried the messages: mpi, nccl"});
    each("hosts", self.hosts, Field{"in the order of their ranks"});
    each("start_seconds", self.start_seconds,
         Field{.about = "a collective's fixed cost besides its hops", .written = true, .finite = true});
    each("within_host", self.within_host,
         Field{.about = "between devices of a host; null: not measured",
               .written = true,
               .null_if_nothing = true});
    each("between_hosts", self.between_hosts,
         Field{.about = "the ring across all hosts; null: not measured",
               .written = true,
               .null_if_nothing = true});
    each("pairs", self.pairs, Field{.about = "of hosts", .written = true});
    each("allreduce", self.allreduces, Field{.about = "timed, of any sizes and layouts", .written = true});
  }
  void check(const ObjectReader& reader) const;
};

// Keeps the better figures of both measurements. Returns whether the second was faster by over a tenth: two
// that agree have found what the link gives.
bool keep_better(Link& link, const Link& again);

// The same for each pair of hosts; whether one of them was faster.
bool keep_better_pairs(Links& links, const Links& again);

Json to_json(const Links& links);
extern const Document kLinksDocument;
// Throws Error(bad_data) that names `origin`, the key and what is wrong with it.
Links links_from_json(const Json& json, const std::string& origin);

// all_reduce_perf of NVIDIA's nccl-tests (src/util.cu, 2.19): its table, and the JSON of its -J.
bool is_nccl_tests_table(std::string_view text);
bool is_nccl_tests_json(const Json& json);
// The allreduces in place; of -J's per-iteration times their range. Throws Error(bad_data) that names
// `origin` and what is wrong: another collective, wrong elements, hosts with unequal counts of devices.
Links links_from_nccl_tests_table(std::string_view table, const std::string& origin);
Links links_from_nccl_tests_json(const Json& json, const std::string& origin);

// From a links.json, from a result.json whose run probed the links between its hosts, or from what
// all_reduce_perf of nccl-tests printed or wrote; throws Error(bad_data) that names it and the remedy. To
// write one: write_output of to_json(links).dump(1) and a newline (base/output.h).
Links read_links(const std::filesystem::path& file);

}  // namespace plumb
