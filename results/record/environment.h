// What env.json and --version --json hold: builds and machines.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace plumb {

// A program, as it answers --version --json.
struct BuildRecord {
  std::string version, commit, build_id, build_type, compiler;
  std::map<std::string, std::string> libraries;  // versions by name

  static void fields(auto& self, auto&& each);
};

// A host, as machine_json describes it.
struct MachineRecord {
  std::string host, kernel, cpu, affinity, interfaces;
  int cpus = 0;
  std::int64_t memory_bytes = 0;
  std::optional<std::string> driver;  // NVIDIA's, if it is loaded
  std::optional<int> threads;         // of a rank

  static void fields(auto& self, auto&& each);
};

struct EnvironmentRecord {
  MachineRecord machine;  // rank 0's
  BuildRecord build;
  std::map<std::string, std::string> variables;
  std::optional<std::vector<MachineRecord>> other_hosts;

  static void fields(auto& self, auto&& each);
};

// Of objects that this host or another rank has just made. Throws Error(bad_data).
BuildRecord build_from_json(const nlohmann::ordered_json& json);
MachineRecord machine_from_json(const nlohmann::ordered_json& json);

nlohmann::ordered_json to_json(const EnvironmentRecord& record);

nlohmann::ordered_json environment_schema();
nlohmann::ordered_json version_schema();

}  // namespace plumb
