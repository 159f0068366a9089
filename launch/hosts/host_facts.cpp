#include "launch/hosts/host_facts.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/machine/machine.h"
#include "base/machine/nvml.h"
#include "base/paths.h"
#include "base/process/side_by_side.h"
#include "base/process/this_process.h"
#include "base/shallow_json.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/unique_fd.h"
#include "launch/hosts/name_lookup.h"
#include "results/record/environment.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

constexpr double kProgramSeconds = 10;  // to say its version
constexpr double kLookUpSeconds = 3;
constexpr double kReachSeconds = 2;
constexpr double kUnlimited = -1;
constexpr int kCudaMajor = 1000, kCudaMinor = 10;  // 12080 is 12.8

ProgramFacts program_facts(const std::string& path, const CommandEnd& end) {
  ProgramFacts facts{.path = path};
  if (end.timed_out) {
    facts.failure = fmt::format("doesn't say its version within {:.0f} s", kProgramSeconds);
    return facts;
  }
  if (end.code != 0) {
    const std::string why = printable(last_line(end.errors));
    facts.failure = why.empty() ? fmt::format("ends with exit code {}", end.code) : why;
    return facts;
  }
  try {
    const auto build =
        record_of<BuildRecord>(nlohmann::ordered_json::parse(end.output, nullptr, false), "--version --json");
    facts.version = build.version;
    facts.commit = build.commit;
    facts.build_id = build.build_id;
    facts.libraries = build.libraries;
  } catch (const Error&) {
    facts.failure = "doesn't answer --version --json as this project's programs do";
  }
  return facts;
}

// "4.1.4" out of "mpirun (Open MPI) 4.1.4".
std::string mpi_version_of(const std::string& said) {
  const std::string line = printable(said.substr(0, said.find('\n')));
  return line.find("Open MPI") == std::string::npos ? line : line.substr(line.rfind(' ') + 1);
}

// The package's programs in the folder of `program`, itself left out.
std::vector<std::string> other_programs(const fs::path& program) {
  std::vector<std::string> paths;
  for (const char* const name :
       {"plumbline", "bench_resnet50", "bench_arcface", "bench_allreduce", "make_rec"})
    if (const std::string path = path_of_program(program.parent_path() / name);
        !path.empty() && program.filename() != name)
      paths.push_back(path);
  return paths;
}

void take_programs(HostFacts& facts, const HostQuestions& questions, const SignalWatch& signals) {
  facts.mpi = {.mpirun = path_of_program("mpirun"), .daemon = path_of_program("orted")};
  if (facts.mpi.daemon.empty()) facts.mpi.daemon = path_of_program("prted");
  std::vector<CommandWords> commands{{questions.program, "--version", "--json"}};
  if (questions.others)
    for (const std::string& path : other_programs(questions.program))
      commands.push_back({path, "--version", "--json"});
  const std::size_t programs = commands.size();
  if (!facts.mpi.mpirun.empty()) commands.push_back({facts.mpi.mpirun, "--version"});
  const auto ends = run_side_by_side(commands, {.timeout_seconds = kProgramSeconds}, signals);
  facts.program = program_facts(questions.program, ends.front());
  for (std::size_t i = 1; i < programs; ++i)
    facts.others.push_back(program_facts(commands[i].front(), ends[i]));
  if (ends.size() > programs && ends.back().code == 0) facts.mpi.version = mpi_version_of(ends.back().output);
}

void take_gpus(HostFacts& facts) {
  const auto system = nvml_system(nvml_library_name());
  if (!system) return;
  if (!system->driver_version.empty()) facts.driver = system->driver_version;
  if (const int version = system->cuda_version; version > 0)
    facts.driver_cuda = fmt::format("{}.{}", version / kCudaMajor, version % kCudaMajor / kCudaMinor);
  for (const NvmlGpuState& gpu : system->gpus)
    facts.gpus.push_back({gpu, is_throttled(gpu.reading.reasons), reason_names(gpu.reading.reasons)});
}

void take_limits(HostFacts& facts) {
  const std::pair<const char*, int> kLimits[]{{"open files", RLIMIT_NOFILE},
                                              {"locked memory", RLIMIT_MEMLOCK}};
  for (const auto& [name, resource] : kLimits) {
    rlimit limit{};
    if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0)
      facts.limits[name] = limit.rlim_cur == RLIM_INFINITY ? kUnlimited : static_cast<double>(limit.rlim_cur);
  }
}

// The folder, or the nearest one above that exists.
std::string nearest_folder(const std::string& path) {
  fs::path folder = absolute_path(path).lexically_normal();
  std::error_code error;
  while (!fs::is_directory(folder, error) && folder != folder.parent_path()) folder = folder.parent_path();
  return folder.string();
}

FolderFacts folder_facts(const std::string& path) {
  FolderFacts facts{.path = path, .existing = nearest_folder(path)};
  facts.writable = ::access(facts.existing.c_str(), W_OK) == 0;
  struct statvfs space {};
  if (statvfs(facts.existing.c_str(), &space) == 0)
    facts.free_bytes = static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
  return facts;
}

void take_machine(HostFacts& facts) {
  const auto machine = record_of<MachineRecord>(machine_json(), "a host");
  facts.host = machine.host;
  facts.kernel = machine.kernel;
  facts.cpu = machine.cpu;
  facts.cpus = machine.cpus;
  facts.memory_bytes = static_cast<double>(machine.memory_bytes);
  facts.interfaces = machine.interfaces;
  facts.driver = machine.driver.value_or("");
  facts.boot_id = proc_value("/proc/sys/kernel/random/boot_id", "");
  facts.load = running_processes();
}

}  // namespace

const Document kHostDocument =
    document_of<HostFacts>("plumbline.host/1", "What plumbline doctor --here says of a host.");

std::vector<PortFacts> adapter_ports(const std::string& folder) {
  std::vector<PortFacts> ports;
  std::error_code error;
  for (const fs::path& device : visible_entries(folder, error))
    for (const fs::path& port : visible_entries(device / "ports", error)) {
      std::map<std::string, std::int64_t> counters;
      for (const fs::path& counter : visible_entries(port / "counters", error))
        if (std::int64_t value = 0; std::ifstream(counter) >> value)
          counters[counter.filename().string()] = value;
      ports.push_back({.name = fmt::format("{}:{}", device.filename().string(), port.filename().string()),
                       .state = proc_value(port / "state", ""),  // the file has "4: ACTIVE"
                       .rate = proc_value(port / "rate", ""),
                       .link_layer = proc_value(port / "link_layer", ""),
                       .counters = std::move(counters)});
    }
  return ports;
}

KernelLog read_kernel_log(const std::string& file) {
  const UniqueFd source(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::string records;
  std::array<char, 8192>
      record{};  // a read returns one record, or EPIPE where the next ones were overwritten
  for (ssize_t bytes = 1; bytes > 0 || (bytes < 0 && errno == EPIPE);) {
    bytes = ::read(source.get(), record.data(), record.size());
    if (bytes > 0) records.append(record.data(), static_cast<std::size_t>(bytes));
  }
  KernelLog log;
  if (records.empty()) return log;
  log.reach = records.find(",0,") == records.find(',') ? "boot" : "part";
  constexpr std::string_view kXid = "NVRM: Xid (";  // "NVRM: Xid (PCI:0000:3b:00): 79, pid=…"
  for (const std::string& line : split(records, '\n')) {
    const std::size_t begin = line.find(kXid), end = line.find("): ", begin);
    if (begin == std::string::npos || end == std::string::npos) continue;
    std::string gpu = line.substr(begin + kXid.size(), end - begin - kXid.size());
    if (gpu.starts_with("PCI:")) gpu.erase(0, 4);
    const std::size_t number = end + 3;
    ++log.xids[gpu][line.substr(number, line.find_first_not_of("0123456789", number) - number)];
  }
  return log;
}

HostFacts gather_host_facts(const HostQuestions& questions, const SignalWatch& signals) {
  HostFacts facts;
  take_machine(facts);
  take_programs(facts, questions, signals);
  take_gpus(facts);
  take_limits(facts);
  facts.ports = adapter_ports("/sys/class/infiniband");
  facts.kernel_log = read_kernel_log("/dev/kmsg");
  struct statvfs space {};
  if (statvfs("/dev/shm", &space) == 0) {
    facts.shared_memory_bytes = static_cast<double>(space.f_blocks) * static_cast<double>(space.f_frsize);
    facts.shared_memory_free_bytes =
        static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
  }
  facts.log_folder = folder_facts(questions.log_folder);
  facts.names = look_up_names(questions.names, kLookUpSeconds, signals);
  facts.unreached = unreached_hosts(facts.names, kReachSeconds, signals);
  return facts;
}

HostFacts host_facts_from_json(const std::string& text) {
  const std::string origin = "a host's answer";
  const nlohmann::ordered_json json = parse_shallow_json(text);
  if (value_or<std::string>(json, "schema") != kHostDocument.name)
    throw Error(ExitCode::bad_data, "'{}' is not an object of {}", printable(shortened(text, 60)),
                kHostDocument.name);
  HostFacts facts;
  fields::read_all(ObjectReader(json, origin, "", kHostDocument.name), facts);
  return facts;
}

}  // namespace plumb
