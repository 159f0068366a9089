// A sweep file: TOML, whose unknown keys are refused. docs/how-to/launching.md explains its keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/record/fields.h"

namespace plumb {

struct SweepTable {
  int repetitions = 7;
  std::int64_t seed = 0;
  int retries = 1;
  double timeout_minutes = 240;

  static constexpr bool kMayLackKeys = true, kHasNoOtherKeys = true;
  static void fields(auto& self, auto&& each) {
    each("repetitions", self.repetitions, Field{"", 1, 99}), each("seed", self.seed, Field{"", 0});
    each("retries", self.retries, Field{"", 0, 100}), each("timeout_minutes", self.timeout_minutes);
  }
  void check(const ObjectReader& reader) const;
};

struct LauncherTable {
  std::optional<std::string> command, programs, hosts, hostfile;
  std::optional<std::vector<std::string>> arguments;

  static constexpr bool kMayLackKeys = true, kHasNoOtherKeys = true;
  static void fields(auto& self, auto&& each) {
    each("command", self.command), each("arguments", self.arguments);
    each("programs", self.programs), each("hosts", self.hosts), each("hostfile", self.hostfile);
  }
  bool is_over_hosts() const;
  void check(const ObjectReader& reader) const;
};

struct CaseTable {
  std::string name, model;
  std::vector<std::int64_t> nodes{1}, devices_per_node, batch_sizes;
  std::vector<std::string> precisions;
  std::optional<std::int64_t> iterations, warmup;
  Json options = Json::object();

  static constexpr bool kHasNoOtherKeys = true;
  static void fields(auto& self, auto&& each) {
    constexpr std::int64_t kMostIterations = 10'000'000;
    each("name", self.name, Field{.written = true}), each("model", self.model);
    each("nodes", self.nodes, Field{.lowest = 1, .highest = 10'000, .written = true});
    each("devices_per_node", self.devices_per_node, Field{"", 1, 1024});
    each("batch_sizes", self.batch_sizes, Field{"", 1, std::int64_t{1} << 24});
    each("precisions", self.precisions);
    each("iterations", self.iterations, Field{"", 0, kMostIterations});
    each("warmup", self.warmup, Field{"", 0, kMostIterations});
    each("options", self.options, Field{.written = true});
  }
  void check(const ObjectReader& reader) const;
};

struct SweepFile {
  SweepTable sweep;
  LauncherTable launcher;
  std::vector<CaseTable> cases;

  static constexpr bool kHasNoOtherKeys = true;
  static void fields(auto& self, auto&& each) {
    each("sweep", self.sweep, Field{.written = true}),
        each("launcher", self.launcher, Field{.written = true});
    each("case", self.cases);
  }
};

// Throws Error(bad_data) with `file` and the key, or with line and column for a mistake in the syntax.
SweepFile read_sweep_file(std::string_view text, const std::string& file);

}  // namespace plumb
