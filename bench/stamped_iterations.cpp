#include "bench/stamped_iterations.h"

namespace plumb {

std::vector<StepTime> run_stamped(Runner& runner, Device& device, int count) {
  const bool behind_the_host = device.limits().kind == DeviceKind::cuda;
  std::vector<StepTime> times;
  device.start_clock();
  for (int i = 0; i < count; ++i) {
    if (behind_the_host) runner.run_iteration();
    runner.run_stamped_iteration();
    device.synchronize();
    while (device.next_end()) {
    }
    const std::vector<StepTime> ended = device.step_times();
    times.insert(times.end(), ended.begin(), ended.end());
  }
  return times;
}

}  // namespace plumb
