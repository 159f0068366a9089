#include "bench/run/stamped_iterations.h"

namespace plumb {
namespace {

void put_back(const Graph& graph, Device& device, const TensorFile& tensors) {
  for (ParameterId p = 0; p < graph.parameters.size(); ++p)
    device.write_parameter(p, tensors.floats.at(graph.parameters[p].name).values);
  for (StatisticId s = 0; s < graph.statistics.size(); ++s)
    device.write_statistic(s, tensors.floats.at(graph.statistics[s].name).values);
}

}  // namespace

std::vector<InstructionTime> run_stamped(Session& session, Runner& runner, int count) {
  Device& device = *session.device;
  const bool behind_the_host = device.limits().kind == DeviceKind::cuda;
  const TensorFile before = read_tensors(session.plan.graph, device);
  std::vector<InstructionTime> times;
  device.start_clock();
  for (int i = 0; i < count; ++i) {
    if (behind_the_host) runner.run_iteration();
    runner.run_stamped_iteration();
    device.synchronize();
    while (device.next_end()) {
    }
    const std::vector<InstructionTime> ended = device.step_times();
    times.insert(times.end(), ended.begin(), ended.end());
  }
  put_back(session.plan.graph, device, before);
  return times;
}

}  // namespace plumb
