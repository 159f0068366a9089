// What plumbline doctor asks of every host: facts, gathered there and sent as one line of JSON.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/process/spawn.h"

namespace plumb {

inline constexpr const char* kHostSchema = "plumbline.host/1";

// The program that is to run, as it answers --version --json there.
struct ProgramFacts {
  std::string path, failure;  // failure: why it doesn't start; empty if it does
  std::string version, commit, build_id;
  std::map<std::string, std::string> libraries;  // name and version

  static constexpr bool kMayLackKeys = true;
  static void fields(auto& self, auto&& each);
};

// Open MPI as a login without a terminal finds it; empty: it isn't in PATH.
struct MpiFacts {
  std::string mpirun, version;  // path, "4.1.4"
  std::string daemon;           // path of orted or prted, which mpirun starts on other hosts

  static constexpr bool kMayLackKeys = true;
  static void fields(auto& self, auto&& each);
};

struct GpuFacts {
  std::string name, uuid;
  double memory_bytes = 0, used_bytes = 0;
  unsigned processes = 0;                        // that compute on it
  std::string ecc, mig;                          // "on", "off", empty: it doesn't tell
  std::map<std::string, std::int64_t> counters;  // as NvmlGpuState
  bool throttled = false;                        // slower than it could be, by one of the reasons
  std::vector<std::string> throttle_reasons;     // "thermal", …
  unsigned sm_clock_mhz = 0, temperature_celsius = 0;

  static constexpr bool kMayLackKeys = true;
  static void fields(auto& self, auto&& each);
};

// A port of an InfiniBand or RoCE adapter, as the kernel shows it.
struct PortFacts {
  std::string name;                     // "mlx5_0:1"
  std::string state, rate, link_layer;  // "ACTIVE", "400 Gb/sec (4X NDR)", "InfiniBand" or "Ethernet"
  std::map<std::string, std::int64_t> counters;  // those in its folder that can be read

  static constexpr bool kMayLackKeys = true;
  static void fields(auto& self, auto&& each);
};

// Xid errors, which NVIDIA's driver writes into the kernel's log.
struct KernelLog {
  std::string reach;  // "boot", "part": older lines are gone, empty: it can't be read
  std::map<std::string, std::map<std::string, int>> xids;  // of a PCI address: how often, by number

  static constexpr bool kMayLackKeys = true;
  static void fields(auto& self, auto&& each);
};

struct FolderFacts {
  std::string path, existing;  // existing: the folder or the nearest one above it that is there
  std::string file_system;     // type, "ext4", "nfs4"
  double free_bytes = 0;
  bool writable = false, has_marker = false;

  static constexpr bool kMayLackKeys = true;
  static void fields(auto& self, auto&& each);
};

struct HostFacts {
  std::string schema{kHostSchema};
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
  std::string nccl_interface;  // that NCCL takes for TCP and for its set-up
  std::vector<PortFacts> ports;
  KernelLog kernel_log;
  std::map<std::string, double> limits;  // "open files", "processes", "locked memory", "stack"; -1: unlimited
  double shared_memory_bytes = 0, shared_memory_free_bytes = 0;
  FolderFacts log_folder;
  std::vector<std::string> addresses;                     // of its interfaces, "eth0=10.77.0.1/16"
  std::map<std::string, std::vector<std::string>> names;  // names that it was asked for, with their addresses
  std::map<std::string, std::string> unreached;  // of these names, hosts that gave no answer, and why
  double clock_seconds = 0;                      // since 1970, when gathering facts began
  double gathering_seconds = 0;                  // how long that took

  static constexpr bool kMayLackKeys = true;
  static void fields(auto& self, auto&& each);
};

// What a host is asked.
struct HostQuestions {
  std::string program;             // path
  bool others = false;             // whether the package's other programs are asked for their builds, too
  std::string log_folder;          // path
  std::string marker;              // path of a file that shows whether the log folder is shared; may be empty
  std::vector<std::string> names;  // to be looked up
};

HostFacts gather_host_facts(const HostQuestions& questions, const SignalWatch& signals);

// Facts of another host, which may lack keys. Throws Error(bad_data) if the text isn't such an object.
HostFacts host_facts_from_json(const std::string& text);
nlohmann::ordered_json to_json(const HostFacts& facts);
nlohmann::ordered_json host_schema();

// Seconds since 1970 on this host's clock.
double wall_seconds();

// NCCL's choice among interfaces that are up, by NCCL_SOCKET_IFNAME ("eth0,ib", "^docker0", "=eth0") or,
// without it: ib's, then others, then docker's (NCCL's documentation, NCCL_SOCKET_IFNAME). May be empty.
std::string nccl_interface(const std::vector<std::string>& interfaces, const std::string& variable);

// The ports below /sys/class/infiniband or another folder, by name.
std::vector<PortFacts> adapter_ports(const std::string& folder);

// `file`: /dev/kmsg; its records begin "priority,sequence,microseconds" (Documentation/ABI/testing/dev-kmsg).
KernelLog read_kernel_log(const std::string& file);

// The folder, or the nearest one above that exists.
std::string nearest_folder(const std::string& path);

}  // namespace plumb
