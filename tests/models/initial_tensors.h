// All initial tensors of a graph by name, as a file of weights has them.
#pragma once

#include "models/weights.h"

namespace plumb {

inline TensorMap initial_tensors(const Graph& graph, std::uint64_t seed) {
  TensorMap tensors;
  for (const Parameter& parameter : graph.parameters)
    tensors[parameter.name] = {parameter.dims, initial_values(parameter, seed)};
  for (const Statistic& statistic : graph.statistics)
    tensors[statistic.name] = {{statistic.channels}, initial_values(statistic)};
  return tensors;
}

}  // namespace plumb
