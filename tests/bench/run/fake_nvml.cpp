#include "tests/bench/run/fake_nvml.h"

#include <cstdio>
#include <string_view>

namespace {

constexpr int kSuccess = 0, kInvalidArgument = 2, kNotFound = 6, kInsufficientSize = 7;
constexpr int kSmClock = 1;
constexpr unsigned kSmClockMhz = 1980, kMemoryClockMhz = 3201;

bool throttled() {
  return fake_nvml()->readings >= fake_nvml()->throttled_from;
}

int write_text(const char* text, char* to, unsigned bytes) {
  std::snprintf(to, bytes, "%s", text);
  return kSuccess;
}

int find(bool known, void** gpu) {
  *gpu = fake_nvml();
  return known ? kSuccess : kNotFound;
}

}  // namespace

extern "C" {

plumb::FakeNvml* fake_nvml() {
  static plumb::FakeNvml script;
  return &script;
}

int nvmlInit_v2() {
  ++fake_nvml()->starts;
  return fake_nvml()->init_answer;
}

int nvmlShutdown() {
  ++fake_nvml()->ends;
  return kSuccess;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** gpu) {
  return find(
      uuid == std::string_view(plumb::kFakeGpu) || std::string_view(uuid).starts_with(plumb::kEmulatedGpus),
      gpu);
}

int nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  return write_text("580.00", text, bytes);
}

int nvmlDeviceGetName(void*, char* text, unsigned bytes) {
  return write_text("Fake H200", text, bytes);
}

int nvmlDeviceGetClockInfo(void*, int clock, unsigned* mhz) {
  *mhz = clock != kSmClock ? kMemoryClockMhz
         : throttled()     ? fake_nvml()->throttled_sm_clock_mhz
                           : kSmClockMhz;
  return kSuccess;
}

int nvmlDeviceGetMaxClockInfo(void*, int clock, unsigned* mhz) {
  *mhz = kSmClockMhz;
  return clock == kSmClock ? kSuccess : kInvalidArgument;
}

int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  *celsius = 61;
  return kSuccess;
}

int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  ++fake_nvml()->readings;
  *milliwatts = fake_nvml()->power_milliwatts;
  return kSuccess;
}

int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13000;
  return kSuccess;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 1;
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** gpu) {
  return find(index == 0, gpu);
}

int nvmlDeviceGetUUID(void*, char* text, unsigned bytes) {
  return write_text(plumb::kFakeGpu, text, bytes);
}

int nvmlDeviceGetMemoryInfo(void*, unsigned long long* memory) {
  memory[0] = 141'000'000'000, memory[1] = 121'000'000'000, memory[2] = 20'000'000'000;
  return kSuccess;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void*) {
  *count = 2;
  return kInsufficientSize;
}

int nvmlDeviceGetEccMode(void*, int* current, int* pending) {
  *current = *pending = 1;
  return kSuccess;
}

int nvmlDeviceGetTotalEccErrors(void*, int type, int counter, unsigned long long* errors) {
  *errors = type == 1 && counter == 0 ? 5 : 77;
  return kSuccess;
}

int nvmlDeviceGetRemappedRows(void*, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                              unsigned* failed) {
  *corrected = *uncorrected = *pending = 1;
  *failed = 0;
  return kSuccess;
}

}  // extern "C"
