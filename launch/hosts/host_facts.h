// What plumbline doctor asks of every host: facts, gathered there and sent as one line of JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/machine/nvml.h"
#include "base/process/this_process.h"
#include "results/record/fields.h"

namespace plumb {

extern const Document kHostDocument;

// The program that is to run, as it answers --version --json there.
struct ProgramFacts {
  std::string path, failure;  // failure: why it doesn't start; empty if it does
  std::string version, commit, build_id;
  std::map<std::string, std::string> libraries;  // name and version

  static constexpr bool kMayLackKeys = true;
  static void fields(auto& self, auto&& each) {
    each("path", self.path);
    each("failure", self.failure, Field{"why it doesn't start, empty if it does"});
    each("version", self.version), each("commit", self.commit), each("build_id", self.build_id);
    each("libraries", self.libraries, Field{"versions by name"});
  }
};

// Open MPI as a login without a terminal finds it; empty: it isn't in PATH.
struct MpiFacts {
  std::string mpirun, version;  // path, "4.1.4"
  std::string daemon;           // path of orted or prted, which mpirun starts on other hosts

  static constexpr bool kMayLackKeys = true;
  static void fields(auto& self, auto&& each) {
    each("mpirun", self.mpirun, Field{"path, empty: it isn't in PATH"}), each("version", self.version);
    each("daemon", self.daemon, Field{"path of orted or prted"});
  }
};

struct GpuFacts : NvmlGpuState {
  bool throttled = false;                     // slower than it could be, by one of the reasons
  std::vector<std::string> throttle_reasons;  // "thermal", …

  static constexpr bool kMayLackKeys = true;
  static void fields(auto& self, auto&& each) {
    each("name", self.name), each("uuid", self.uuid);
    each("memory_bytes", self.memory_bytes), each("used_bytes", self.used_bytes);
    each("processes", self.processes, Field{"that compute on it"});
    each("ecc", self.ecc, Field{"on, off, or empty: it doesn't tell"});
    each("mig", self.mig, Field{"likewise"});
    each("counters", self.counters, Field{"of links, memory and the fabric, by name"});
    each("throttled", self.throttled), each("throttle_reasons", self.throttle_reasons);
    each("sm_clock_mhz", self.reading.sm_clock_mhz);
    each("temperature_celsius", self.reading.temperature_celsius);
  }
};

// A port of an InfiniBand or RoCE adapter, as the kernel shows it.
struct PortFacts {
  std::string name;                     // "mlx5_0:1"
  std::string state, rate, link_layer;  // "ACTIVE", "400 Gb/sec (4X NDR)", "InfiniBand" or "Ethernet"
  std::map<std::string, std::int64_t> counters;  // those in its folder that can be read

  static constexpr bool kMayLackKeys = true;
  static void fields(auto& self, auto&& each) {
    each("name", self.name, Field{"as \"mlx5_0:1\""});
    each("state", self.state), each("rate", self.rate), each("link_layer", self.link_layer);
    each("counters", self.counters);
  }
};

// Xid errors, which NVIDIA's driver writes into the kernel's log.
struct KernelLog {
  std::string reach;  // "boot", "part": older lines are gone, empty: it can't be read
  std::map<std::string, std::map<std::string, int>> xids;  // of a PCI address: how often, by number

  static constexpr bool kMayLackKeys = true;
  static void fields(auto& self, auto&& each) {
    each("reach", self.reach, Field{"boot, part: older lines are gone, or empty: it can't be read"});
    each("xids", self.xids, Field{"by PCI address: how often, by number"});
  }
};

struct FolderFacts {
  std::string path, existing;  // existing: the folder or the nearest one above it that is there
  double free_bytes = 0;
  bool writable = false;

  static constexpr bool kMayLackKeys = true;
  static void fields(auto& self, auto&& each) {
    each("path", self.path);
    each("existing", self.existing, Field{"that folder, or the nearest one above it that is there"});
    each("free_bytes", self.free_bytes), each("writable", self.writable);
  }
};

struct HostFacts {
  std::string schema{kHostDocument.name};
  std::string host, kernel, cpu, interfaces, driver;  // as in env.json
  std::string boot_id;  // of the kernel's start: the same for names of one machine
  int cpus = 0;
  double memory_bytes = 0;
  double load = 0;  // processes that want to run now, without this one
  ProgramFacts program;
  std::vector<ProgramFacts> others;  // the package's other programs that are next to it
  MpiFacts mpi;
  std::string driver_cuda;  // the newest CUDA that the driver runs, "12.8"; empty without a driver
  std::vector<GpuFacts> gpus;
  std::vector<PortFacts> ports;
  KernelLog kernel_log;
  std::map<std::string, double> limits;  // "open files", "locked memory"; -1: unlimited
  double shared_memory_bytes = 0, shared_memory_free_bytes = 0;
  FolderFacts log_folder;
  std::map<std::string, std::vector<std::string>> names;  // names that it was asked for, with their addresses
  std::map<std::string, std::string> unreached;  // of these names, hosts that gave no answer, and why

  static constexpr bool kMayLackKeys = true;
  static void fields(auto& self, auto&& each) {
    each("schema", self.schema), each("host", self.host), each("kernel", self.kernel), each("cpu", self.cpu);
    each("interfaces", self.interfaces), each("driver", self.driver);
    each("boot_id", self.boot_id, Field{"the same for names of one machine"}), each("cpus", self.cpus);
    each("memory_bytes", self.memory_bytes);
    each("load", self.load, Field{"processes that want to run now"});
    each("program", self.program), each("others", self.others, Field{"programs next to it"});
    each("mpi", self.mpi),
        each("driver_cuda", self.driver_cuda, Field{"the newest CUDA that the driver runs"});
    each("gpus", self.gpus);
    each("ports", self.ports, Field{"of InfiniBand and RoCE adapters"}), each("kernel_log", self.kernel_log);
    each("limits", self.limits, Field{"of a process; -1: unlimited"});
    each("shared_memory_bytes", self.shared_memory_bytes);
    each("shared_memory_free_bytes", self.shared_memory_free_bytes), each("log_folder", self.log_folder);
    each("names", self.names, Field{"that it was asked for, with their addresses"});
    each("unreached", self.unreached, Field{"of these, hosts that gave no answer, and why"});
  }
};

// What a host is asked.
struct HostQuestions {
  std::string program;             // path
  bool others = false;             // whether the package's other programs are asked for their builds, too
  std::string log_folder;          // path
  std::vector<std::string> names;  // to be looked up
};

HostFacts gather_host_facts(const HostQuestions& questions, const SignalWatch& signals);

// Facts of another host, which may lack keys. Throws Error(bad_data) if the text isn't such an object.
HostFacts host_facts_from_json(const std::string& text);

// The ports below /sys/class/infiniband or another folder, by name.
std::vector<PortFacts> adapter_ports(const std::string& folder);

// `file`: /dev/kmsg; its records begin "priority,sequence,microseconds" (Documentation/ABI/testing/dev-kmsg).
KernelLog read_kernel_log(const std::string& file);

}  // namespace plumb
