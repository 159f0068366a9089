#include "bench/run/gpu_monitor.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/bench/run/fake_nvml.h"

namespace plumb {
namespace {

constexpr std::uint64_t kPowerCap = 0x4, kThermal = 0x20, kIdle = 0x1;

// One sample per second, 100 W and 1000 MHz, unless changed.
std::vector<GpuSample> steady_samples(int count) {
  std::vector<GpuSample> samples;
  for (int i = 0; i < count; ++i)
    samples.push_back({.seconds = static_cast<double>(i),
                       .reading = {.reasons = 0,
                                   .sm_clock_mhz = 1000,
                                   .memory_clock_mhz = 3000,
                                   .temperature_celsius = 50,
                                   .power_milliwatts = 100'000},
                       .energy_millijoules = 7'000'000'000'000 + static_cast<std::uint64_t>(i) * 120'000});
  return samples;
}

TEST(GpuWindow, TakesEnergyFromTheCountersRate) {
  const GpuRecord record = summarize_gpu(steady_samples(10), 2.5, 7.25);
  EXPECT_NEAR(record.joules.value(), 120 * 4.75, 1e-6);
  EXPECT_EQ(record.sample_count, 5);
  EXPECT_EQ(record.window_seconds, 4.75);
  EXPECT_EQ(record.samples.seconds.front(), 0.5);
}

TEST(GpuWindow, HasNoEnergyWithoutTwoSamplesOrACounter) {
  EXPECT_NEAR(summarize_gpu(steady_samples(10), 2.5, 2.75).joules.value(), 30, 1e-6);
  EXPECT_FALSE(summarize_gpu(steady_samples(1), 0, 1).joules);
  EXPECT_FALSE(summarize_gpu({}, 0, 1).joules);
  std::vector<GpuSample> samples = steady_samples(10);
  for (GpuSample& sample : samples) sample.energy_millijoules.reset();
  EXPECT_FALSE(summarize_gpu(samples, 2, 5).joules) << "GPUs before Volta have no counter";
}

TEST(GpuWindow, FindsEveryReasonAndHowOften) {
  std::vector<GpuSample> samples = steady_samples(10);
  samples[1].reading.reasons = kIdle;  // before the window
  for (std::size_t i : {4U, 5U, 6U}) samples[i].reading.reasons = kPowerCap;
  samples[6].reading = {.reasons = kPowerCap | kThermal, .sm_clock_mhz = 700, .temperature_celsius = 90};
  const GpuRecord record = summarize_gpu(samples, 2, 7);
  EXPECT_EQ(record.throttle_reasons,
            (std::map<std::string, double>{{"power cap", 3.0 / 6}, {"thermal", 1.0 / 6}}));
  EXPECT_EQ(record.throttled_share, 0.5);
  EXPECT_EQ(record.sm_clock_mhz.min, 700);
  EXPECT_EQ(record.sm_clock_mhz.median, 1000);
  EXPECT_EQ(record.temperature_celsius.max, 90);
  EXPECT_TRUE(record.samples.throttled[2]);
  EXPECT_FALSE(record.samples.throttled[1]);
}

TEST(GpuWindow, IdleAndChosenClocksAreNoThrottling) {
  EXPECT_FALSE(is_throttled(0x1 | 0x2 | 0x100));
  for (const std::uint64_t bit : {0x4, 0x8, 0x10, 0x20, 0x40, 0x80}) EXPECT_TRUE(is_throttled(bit)) << bit;
  EXPECT_EQ(reason_names(0x88), (std::vector<std::string>{"hardware slowdown", "power brake"}));
  EXPECT_TRUE(reason_names(0x10000).empty());
}

// Keeps the fake library loaded, so that its script outlives the monitor.
class FakeLibrary {
 public:
  explicit FakeLibrary(const char* path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
    const auto find_script = reinterpret_cast<FakeNvml* (*)()>(dlsym(handle_, "fake_nvml"));
    script_ = find_script();
    setenv("PLUMBLINE_NVML_LIBRARY", path, 1);
  }
  ~FakeLibrary() {
    unsetenv("PLUMBLINE_NVML_LIBRARY");
    dlclose(handle_);
  }
  FakeLibrary(const FakeLibrary&) = delete;
  FakeLibrary& operator=(const FakeLibrary&) = delete;
  FakeNvml& operator*() const { return *script_; }
  FakeNvml* operator->() const { return script_; }
  void wait_for_readings(int count) const {
    while (script_->readings < count) std::this_thread::yield();
  }

 private:
  void* handle_;
  FakeNvml* script_ = nullptr;
};

// A clock that shows the number of readings so far, so results don't depend on test speed.
GpuMonitorOptions clocked_by(const FakeLibrary& library) {
  return {.period_seconds = 1e-4, .most_samples = 1 << 17, .clock = [script = &*library] {
            return static_cast<double>(script->readings);
          }};
}

TEST(GpuMonitor, SamplesAThrottlingGpuUntilItIsStopped) {
  const FakeLibrary library(PLUMB_FAKE_NVML);
  library->throttled_from = 30;
  const auto monitor = watch_gpu(kFakeGpu, clocked_by(library));
  ASSERT_NE(monitor, nullptr);
  library.wait_for_readings(60);
  monitor->stop();
  const int readings = library->readings;
  EXPECT_EQ(monitor->samples().size(), static_cast<std::size_t>(readings));
  const GpuRecord record = monitor->record(10, 50, 3, kFakeGpu);
  EXPECT_EQ(record.rank, 3);
  EXPECT_EQ(record.name, "Fake H200");
  EXPECT_EQ(record.driver_version, "580.00");
  EXPECT_EQ(record.sample_count, 41);
  EXPECT_NEAR(record.joules.value(), 2.0 * 40, 1e-6);  // 2 J per reading
  EXPECT_EQ(record.sm_clock_mhz.min, 1200);
  EXPECT_EQ(record.sm_clock_mhz.max, 1980);
  EXPECT_EQ(record.memory_clock_mhz.median, 3201);
  EXPECT_EQ(record.throttle_reasons.count("power cap"), 1U);
  EXPECT_GT(record.throttled_share, 0.4);
  EXPECT_LT(record.throttled_share, 0.6);
  EXPECT_EQ(library->readings, readings) << "it samples on after stop()";
}

TEST(GpuMonitor, GivesTheLibraryBack) {
  const FakeLibrary library(PLUMB_FAKE_NVML);
  watch_gpu(kFakeGpu, clocked_by(library)).reset();
  EXPECT_EQ(library->starts, 1);
  EXPECT_EQ(library->ends, 1);
}

TEST(GpuMonitor, ThinsOutWhatItKeepsInPlaceOfGrowing) {
  const FakeLibrary library(PLUMB_FAKE_NVML);
  GpuMonitorOptions options = clocked_by(library);
  options.most_samples = 16;
  options.period_seconds = 1e-6;
  const auto monitor = watch_gpu(kFakeGpu, options);
  library.wait_for_readings(50);  // the period doubles every eight samples
  monitor->stop();
  EXPECT_LE(monitor->samples().size(), 17U);
  EXPECT_EQ(monitor->samples().front().seconds, 0);
  EXPECT_GE(monitor->samples().back().seconds, 49);
  EXPECT_NEAR(monitor->record(0, 50, 0, kFakeGpu).joules.value(), 2.0 * 50, 1e-6);
}

TEST(GpuMonitor, DoesWithoutFunctionsThatTheDriverLacks) {
  const FakeLibrary library(PLUMB_FAKE_NVML_WITHOUT_COUNTERS);
  library->throttled_from = 0;
  const auto monitor = watch_gpu(kFakeGpu, clocked_by(library));
  library.wait_for_readings(20);
  monitor->stop();
  const GpuRecord record = monitor->record(5, 15, 0, kFakeGpu);
  EXPECT_FALSE(record.joules);
  EXPECT_TRUE(record.throttle_reasons.empty());
  EXPECT_EQ(record.sm_clock_mhz.median, 1200);
}

TEST(GpuMonitor, IsAbsentWithoutAGpuALibraryOrADriver) {
  EXPECT_EQ(watch_gpu(""), nullptr);
  {
    const FakeLibrary library(PLUMB_FAKE_NVML);
    EXPECT_EQ(watch_gpu("GPU-unknown"), nullptr);
    library->init_answer = 9;
    library->starts = library->ends = 0;
    EXPECT_EQ(watch_gpu(kFakeGpu), nullptr);
    EXPECT_EQ(library->starts, 1);
    EXPECT_EQ(library->ends, 0) << "what didn't start needn't end";
  }
  EXPECT_FALSE(open_nvml_gpu(kFakeGpu, "/nowhere/libnvidia-ml.so.1"));
  EXPECT_FALSE(open_nvml_gpu(kFakeGpu, "libm.so.6")) << "a library, but without a single function";
}

TEST(GpuMonitor, LooksForTheDriversLibraryUnlessToldOtherwise) {
  unsetenv("PLUMBLINE_NVML_LIBRARY");
  EXPECT_EQ(nvml_library_name(), "libnvidia-ml.so.1");
  setenv("PLUMBLINE_NVML_LIBRARY", "/opt/odd/libnvml.so", 1);
  EXPECT_EQ(nvml_library_name(), "/opt/odd/libnvml.so");
  unsetenv("PLUMBLINE_NVML_LIBRARY");
}

}  // namespace
}  // namespace plumb
