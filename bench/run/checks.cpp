#include "bench/run/checks.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/text.h"

namespace plumb {

std::uint64_t parameter_checksum(const Graph& graph, const Device& device) {
  std::uint64_t hash = kFnvOffset;
  std::vector<float> values;
  for (ParameterId p = 0; p < graph.parameters.size(); ++p) {
    if (graph.parameters[p].shard) continue;
    values.resize(static_cast<std::size_t>(graph.parameters[p].elements()));
    device.read_parameter(p, values);
    hash = fnv1a(values, hash);
  }
  return hash;
}

std::string first_not_finite(const Graph& graph, const Device& device) {
  std::vector<float> values;
  const auto finite = [&] {
    return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  };
  for (ParameterId p = 0; p < graph.parameters.size(); ++p) {
    values.resize(static_cast<std::size_t>(graph.parameters[p].elements()));
    device.read_parameter(p, values);
    if (!finite()) return graph.parameters[p].name;
  }
  for (StatisticId s = 0; s < graph.statistics.size(); ++s) {
    values.resize(static_cast<std::size_t>(graph.statistics[s].channels));
    device.read_statistic(s, values);
    if (!finite()) return graph.statistics[s].name;
  }
  return "";
}

Checks check_run(const RunEvidence& evidence) {
  Checks checks;
  const auto& [checksums, initial, not_finite, loss, learning_rate] = evidence;
  const auto odd =
      std::find_if(checksums.begin(), checksums.end(), [&](auto sum) { return sum != checksums.front(); });
  checks.replicas_identical = odd == checksums.end();
  checks.parameters_moved = learning_rate == 0 || checksums.front() != initial;
  const auto bad = std::find_if(loss.begin(), loss.end(), [](double value) { return !std::isfinite(value); });
  checks.loss_finite = bad == loss.end();
  const auto poisoned =
      std::find_if(not_finite.begin(), not_finite.end(), [](const auto& name) { return !name.empty(); });
  checks.tensors_finite = poisoned == not_finite.end();
  if (!checks.loss_finite)
    checks.failure = fmt::format(
        "the loss is not finite at iteration {}; lower --lr or look at the data: this run is no measurement",
        bad - loss.begin());
  else if (!checks.tensors_finite)
    checks.failure = fmt::format(
        "tensor {} of rank {} is not finite after the run; lower --lr or look at the data: this run is no "
        "measurement",
        *poisoned, poisoned - not_finite.begin());
  else if (!checks.replicas_identical)
    checks.failure = fmt::format(
        "the parameters of rank {} differ from rank 0's after the run: an allreduce lost or changed data, "
        "this "
        "run is no measurement",
        odd - checksums.begin());
  else if (!checks.parameters_moved)
    checks.failure =
        "no parameter has moved during the run: the update did nothing, this run is no measurement";
  return checks;
}

}  // namespace plumb
