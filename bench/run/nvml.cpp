#include "bench/run/nvml.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <utility>

namespace plumb {
namespace {

using Status = int;  // nvmlReturn_t
constexpr Status kSuccess = 0;
using Gpu = struct NvmlDevice*;  // nvmlDevice_t
constexpr int kSmClock = 1, kMemoryClock = 2, kGpuSensor = 0;
constexpr std::size_t kTextBytes = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE, the longest of its texts here

// A function of the library, or none: then it answers nothing.
template <typename... Arguments>
class Function {
 public:
  Function(void* library, const char* name)
      : call_(reinterpret_cast<Status (*)(Arguments...)>(dlsym(library, name))) {}
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
  Function<const char*, Gpu*> by_pci_bus_id{library, "nvmlDeviceGetHandleByPciBusId_v2",
                                            "nvmlDeviceGetHandleByPciBusId"};
  Function<char*, unsigned> driver_version{library, "nvmlSystemGetDriverVersion"};
  Function<Gpu, char*, unsigned> name{library, "nvmlDeviceGetName"};
  Function<Gpu, int, unsigned*> clock{library, "nvmlDeviceGetClockInfo"};
  Function<Gpu, int, unsigned*> highest_clock{library, "nvmlDeviceGetMaxClockInfo"};
  Function<Gpu, int, unsigned*> temperature{library, "nvmlDeviceGetTemperature"};
  Function<Gpu, unsigned*> power{library, "nvmlDeviceGetPowerUsage"};
  Function<Gpu, unsigned long long*> energy{library, "nvmlDeviceGetTotalEnergyConsumption"};
  Function<Gpu, unsigned long long*> reasons{library, "nvmlDeviceGetCurrentClocksEventReasons",
                                             "nvmlDeviceGetCurrentClocksThrottleReasons"};
};

// NVML, from its start to its end, and one GPU of it.
class LoadedGpu final : public NvmlGpu {
 public:
  explicit LoadedGpu(LibraryHandle library)
      : library_(std::move(library)), call_{library_.get()}, started_(call_.start()) {}
  ~LoadedGpu() override {
    if (started_) call_.stop();
  }
  LoadedGpu(const LoadedGpu&) = delete;
  LoadedGpu& operator=(const LoadedGpu&) = delete;

  bool find(const std::string& gpu) {
    const bool answers =
        started_ && (call_.by_uuid(gpu.c_str(), &gpu_) || call_.by_pci_bus_id(gpu.c_str(), &gpu_));
    return answers && gpu_;
  }

  std::string name() const override {
    std::array<char, kTextBytes> text{};
    return call_.name(gpu_, text.data(), text.size() - 1) ? text.data() : "";
  }
  std::string driver_version() const override {
    std::array<char, kTextBytes> text{};
    return call_.driver_version(text.data(), text.size() - 1) ? text.data() : "";
  }
  unsigned highest_sm_clock_mhz() const override {
    unsigned mhz = 0;
    return call_.highest_clock(gpu_, kSmClock, &mhz) ? mhz : 0;
  }

  NvmlReading read() const override {
    NvmlReading reading;
    unsigned value = 0;
    if (call_.clock(gpu_, kSmClock, &value)) reading.sm_clock_mhz = value;
    if (call_.clock(gpu_, kMemoryClock, &value)) reading.memory_clock_mhz = value;
    if (call_.temperature(gpu_, kGpuSensor, &value)) reading.temperature_celsius = value;
    if (call_.power(gpu_, &value)) reading.power_milliwatts = value;
    unsigned long long bits = 0;
    if (call_.reasons(gpu_, &bits)) reading.reasons = bits;
    return reading;
  }

  std::optional<std::uint64_t> energy_millijoules() const override {
    unsigned long long millijoules = 0;
    if (!call_.energy(gpu_, &millijoules)) return std::nullopt;
    return millijoules;
  }

 private:
  LibraryHandle library_;
  Functions call_;
  bool started_;
  Gpu gpu_ = nullptr;
};

}  // namespace

std::unique_ptr<NvmlGpu> open_nvml_gpu(const std::string& gpu, const std::string& library) {
  LibraryHandle handle(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!handle) return nullptr;
  auto loaded = std::make_unique<LoadedGpu>(std::move(handle));
  if (!loaded->find(gpu)) return nullptr;
  return loaded;
}

std::string nvml_library_name() {
  const char* given = std::getenv("PLUMBLINE_NVML_LIBRARY");
  return given && *given ? given : "libnvidia-ml.so.1";
}

}  // namespace plumb
