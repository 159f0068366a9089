// Functions missing on some GPUs and drivers: the energy counter, and clock throttle reasons under their
// older name.
#include "tests/bench/run/fake_nvml.h"

extern "C" {

int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  *millijoules = 1'000'000'000ULL + fake_nvml()->millijoules_per_reading *
                                        static_cast<unsigned long long>(fake_nvml()->readings);
  return 0;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = fake_nvml()->readings >= fake_nvml()->throttled_from ? fake_nvml()->throttle_reasons : 0;
  return 0;
}

}  // extern "C"
