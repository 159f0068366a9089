#include "results/record/environment.h"

#include "results/record/fields.h"

namespace plumb {
namespace {

template <fields::Record T>
T from_json(const nlohmann::ordered_json& json, const std::string& origin) {
  T record;
  fields::read_all(ObjectReader(json, origin), record);
  return record;
}

}  // namespace

void BuildRecord::fields(auto& self, auto&& each) {
  each("version", self.version), each("commit", self.commit);
  each("build_id", self.build_id, Field{"the linker's, in hexadecimal"});
  each("build_type", self.build_type), each("compiler", self.compiler);
  each("libraries", self.libraries, Field{"versions by name"});
}

void MachineRecord::fields(auto& self, auto&& each) {
  each("host", self.host), each("kernel", self.kernel), each("cpu", self.cpu);
  each("cpus", self.cpus, Field{"that are online"});
  each("affinity", self.affinity, Field{"CPUs of the process, as \"0-3,8\""});
  each("memory_bytes", self.memory_bytes);
  each("interfaces", self.interfaces, Field{"that are up and have an address, loopback aside"});
  each("driver", self.driver, Field{"NVIDIA's"}), each("threads", self.threads, Field{"of each rank"});
}

void EnvironmentRecord::fields(auto& self, auto&& each) {
  MachineRecord::fields(self.machine, each);
  each("build", self.build);
  each("variables", self.variables, Field{"of a fixed list"});
  each("other_hosts", self.other_hosts);
}

BuildRecord build_from_json(const nlohmann::ordered_json& json) {
  return from_json<BuildRecord>(json, "--version --json");
}

MachineRecord machine_from_json(const nlohmann::ordered_json& json) {
  return from_json<MachineRecord>(json, "a host");
}

nlohmann::ordered_json to_json(const EnvironmentRecord& record) {
  return fields::written(record);
}

nlohmann::ordered_json environment_schema() {
  return json_schema_of<EnvironmentRecord>("env.json", "Where a run ran: rank 0's host, then others.");
}

nlohmann::ordered_json version_schema() {
  return json_schema_of<BuildRecord>("--version --json", "A program and its libraries.");
}

}  // namespace plumb
