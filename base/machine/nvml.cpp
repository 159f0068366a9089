#include "base/machine/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/process/this_process.h"

namespace plumb {
namespace {

using Status = int;  // nvmlReturn_t
constexpr Status kSuccess = 0;
using Gpu = struct NvmlDevice*;  // nvmlDevice_t
constexpr int kSmClock = 1, kMemoryClock = 2, kGpuSensor = 0;
constexpr int kUncorrectedErrors = 1, kSinceDriverLoad = 0;  // nvmlMemoryErrorType_t, nvmlEccCounterType_t
struct MemoryInfo {                                          // nvmlMemory_t
  unsigned long long total = 0, free = 0, used = 0;
};
constexpr std::size_t kTextBytes = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE, the longest of its texts here

// A function of the library; without either it answers nothing.
template <typename... Arguments>
class Function {
 public:
  Function(void* library, const char* name)
      : call_(library ? reinterpret_cast<Status (*)(Arguments...)>(dlsym(library, name)) : nullptr) {}
  // The first of two names that is there.
  Function(void* library, const char* name, const char* older_name) : Function(library, name) {
    if (!call_) *this = Function(library, older_name);
  }
  bool operator()(Arguments... arguments) const { return call_ && call_(arguments...) == kSuccess; }

 private:
  Status (*call_)(Arguments...);
};

struct LibraryDeleter {
  void operator()(void* library) const { dlclose(library); }
};

using LibraryHandle = std::unique_ptr<void, LibraryDeleter>;

struct Functions {
  void* library;
  Function<> start{library, "nvmlInit_v2", "nvmlInit"};
  Function<> stop{library, "nvmlShutdown"};
  Function<const char*, Gpu*> by_uuid{library, "nvmlDeviceGetHandleByUUID"};
  Function<char*, unsigned> driver_version{library, "nvmlSystemGetDriverVersion"};
  Function<Gpu, char*, unsigned> name{library, "nvmlDeviceGetName"};
  Function<Gpu, int, unsigned*> clock{library, "nvmlDeviceGetClockInfo"};
  Function<Gpu, int, unsigned*> highest_clock{library, "nvmlDeviceGetMaxClockInfo"};
  Function<Gpu, int, unsigned*> temperature{library, "nvmlDeviceGetTemperature"};
  Function<Gpu, unsigned*> power{library, "nvmlDeviceGetPowerUsage"};
  Function<Gpu, unsigned long long*> energy{library, "nvmlDeviceGetTotalEnergyConsumption"};
  Function<Gpu, unsigned long long*> reasons{library, "nvmlDeviceGetCurrentClocksEventReasons",
                                             "nvmlDeviceGetCurrentClocksThrottleReasons"};
  Function<int*> cuda_version{library, "nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"};
  Function<unsigned*> count{library, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"};
  Function<unsigned, Gpu*> by_index{library, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"};
  Function<Gpu, char*, unsigned> uuid{library, "nvmlDeviceGetUUID"};
  Function<Gpu, MemoryInfo*> memory{library, "nvmlDeviceGetMemoryInfo"};
  Function<Gpu, unsigned*, void*> processes{library, "nvmlDeviceGetComputeRunningProcesses_v3",
                                            "nvmlDeviceGetComputeRunningProcesses"};
  Function<Gpu, int*, int*> ecc_mode{library, "nvmlDeviceGetEccMode"};
  Function<Gpu, int, int, unsigned long long*> ecc_errors{library, "nvmlDeviceGetTotalEccErrors"};
  Function<Gpu, unsigned*, unsigned*, unsigned*, unsigned*> remapped_rows{library,
                                                                          "nvmlDeviceGetRemappedRows"};
  Function<Gpu, unsigned*, unsigned*> mig_mode{library, "nvmlDeviceGetMigMode"};
};

// NVML, from its start to its end.
struct Nvml {
  explicit Nvml(const std::string& name)
      : library(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)), call{library.get()}, started(call.start()) {}
  ~Nvml() {
    if (started) call.stop();
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  LibraryHandle library;
  Functions call;
  bool started;  // false if there is no library or no driver
};

// The text that a function of the library writes; empty if it doesn't.
template <typename... Arguments>
std::string text_of(const Function<Arguments..., char*, unsigned>& function, Arguments... of) {
  std::array<char, kTextBytes> text{};
  return function(of..., text.data(), text.size() - 1) ? text.data() : "";
}

NvmlReading read_gpu(const Functions& call, Gpu gpu) {
  NvmlReading reading;
  unsigned value = 0;
  if (call.clock(gpu, kSmClock, &value)) reading.sm_clock_mhz = value;
  if (call.clock(gpu, kMemoryClock, &value)) reading.memory_clock_mhz = value;
  if (call.temperature(gpu, kGpuSensor, &value)) reading.temperature_celsius = value;
  if (call.power(gpu, &value)) reading.power_milliwatts = value;
  unsigned long long bits = 0;
  if (call.reasons(gpu, &bits)) reading.reasons = bits;
  return reading;
}

NvmlGpuState state_of(const Functions& call, Gpu gpu) {
  NvmlGpuState state{.name = text_of<Gpu>(call.name, gpu),
                     .uuid = text_of<Gpu>(call.uuid, gpu),
                     .reading = read_gpu(call, gpu)};
  MemoryInfo memory;
  if (call.memory(gpu, &memory)) {
    state.memory_bytes = static_cast<double>(memory.total);
    state.used_bytes = static_cast<double>(memory.used);
  }
  call.processes(gpu, &state.processes, nullptr);  // fails where there are some, for want of room, and counts
  int now = 0, later = 0;
  if (call.ecc_mode(gpu, &now, &later)) state.ecc = now != 0 ? "on" : "off";
  unsigned mig = 0, mig_later = 0;
  if (call.mig_mode(gpu, &mig, &mig_later)) state.mig = mig != 0 ? "on" : "off";
  unsigned long long errors = 0;
  if (call.ecc_errors(gpu, kUncorrectedErrors, kSinceDriverLoad, &errors))
    state.counters["uncorrected_errors"] = static_cast<std::int64_t>(errors);
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (call.remapped_rows(gpu, &corrected, &uncorrected, &pending, &failed))
    state.counters.insert(
        {{"rows_uncorrected", uncorrected}, {"rows_pending", pending}, {"rows_failed", failed}});
  add_nvml_counters(call.library, gpu, state.counters);
  return state;
}

// Bits of NvmlReading::reasons.
struct NamedReason {
  std::uint64_t bit;
  const char* name;
  bool throttles;
};
constexpr std::array<NamedReason, 9> kReasons{{
    {0x1, "idle", false},
    {0x2, "application setting", false},
    {0x4, "power cap", true},
    {0x8, "hardware slowdown", true},
    {0x10, "sync boost", true},
    {0x20, "thermal", true},
    {0x40, "hardware thermal", true},
    {0x80, "power brake", true},
    {0x100, "display setting", false},
}};

}  // namespace

std::vector<std::string> reason_names(std::uint64_t reasons) {
  std::vector<std::string> names;
  for (const NamedReason& reason : kReasons)
    if (reasons & reason.bit) names.emplace_back(reason.name);
  return names;
}

bool is_throttled(std::uint64_t reasons) {
  return std::ranges::any_of(
      kReasons, [&](const NamedReason& reason) { return reason.throttles && (reasons & reason.bit) != 0; });
}

std::optional<NvmlGpu> open_nvml_gpu(const std::string& uuid, const std::string& library) {
  const auto nvml = std::make_shared<const Nvml>(library);
  const Functions& call = nvml->call;
  Gpu found = nullptr;
  if (!nvml->started || !call.by_uuid(uuid.c_str(), &found) || !found) return std::nullopt;
  NvmlGpu gpu{.name = text_of<Gpu>(call.name, found),
              .driver_version = text_of<>(call.driver_version),
              .read = [nvml, found] { return read_gpu(nvml->call, found); },
              .energy_millijoules = [nvml, found]() -> std::optional<std::uint64_t> {
                unsigned long long millijoules = 0;
                if (!nvml->call.energy(found, &millijoules)) return std::nullopt;
                return millijoules;
              }};
  if (unsigned mhz = 0; call.highest_clock(found, kSmClock, &mhz)) gpu.highest_sm_clock_mhz = mhz;
  return gpu;
}

std::optional<NvmlSystem> nvml_system(const std::string& library) {
  const Nvml nvml(library);
  if (!nvml.started) return std::nullopt;
  const Functions& call = nvml.call;
  NvmlSystem system{.driver_version = text_of<>(call.driver_version)};
  int version = 0;
  if (call.cuda_version(&version)) system.cuda_version = version;
  unsigned count = 0;
  call.count(&count);
  for (unsigned index = 0; index < count; ++index)
    if (Gpu gpu = nullptr; call.by_index(index, &gpu)) system.gpus.push_back(state_of(call, gpu));
  return system;
}

std::string nvml_library_name() {
  const std::string given = environment_variable("PLUMBLINE_NVML_LIBRARY");
  return given.empty() ? "libnvidia-ml.so.1" : given;
}

}  // namespace plumb
