// What env.json and --version --json hold: builds and machines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "results/record/fields.h"

namespace plumb {

// A program, as it answers --version --json.
struct BuildRecord {
  std::string version, commit, build_id, build_type, compiler;
  std::map<std::string, std::string> libraries;

  static void fields(auto& self, auto&& each) {
    each("version", self.version), each("commit", self.commit);
    each("build_id", self.build_id, Field{"the linker's, in hexadecimal"});
    each("build_type", self.build_type), each("compiler", self.compiler);
    each("libraries", self.libraries, Field{"versions by name"});
  }
};

// A host, as machine_json describes it.
struct MachineRecord {
  std::string host, kernel, cpu, affinity, interfaces;
  int cpus = 0;
  std::int64_t memory_bytes = 0;
  std::optional<std::string> driver;  // if it is loaded
  std::optional<int> threads;

  static void fields(auto& self, auto&& each) {
    each("host", self.host), each("kernel", self.kernel), each("cpu", self.cpu);
    each("cpus", self.cpus, Field{"that are online"});
    each("affinity", self.affinity, Field{"CPUs of the process, as \"0-3,8\""});
    each("memory_bytes", self.memory_bytes);
    each("interfaces", self.interfaces, Field{"that are up and have an address, loopback aside"});
    each("driver", self.driver, Field{"NVIDIA's"}), each("threads", self.threads, Field{"of each rank"});
  }
};

struct EnvironmentRecord {
  MachineRecord machine;  // rank 0's
  BuildRecord build;
  std::map<std::string, std::string> variables;
  std::optional<std::vector<MachineRecord>> other_hosts;

  static void fields(auto& self, auto&& each) {
    MachineRecord::fields(self.machine, each);
    each("build", self.build);
    each("variables", self.variables, Field{"of a fixed list"});
    each("other_hosts", self.other_hosts);
  }
};

}  // namespace plumb
