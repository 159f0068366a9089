// Converts between a test's fp32 tensors and the reference's doubles.
#pragma once

#include <span>

#include "tests/kernels/graph_builder.h"
#include "tests/kernels/reference.h"

namespace plumb {

inline Doubles to_double(std::span<const float> values) {
  return {values.begin(), values.end()};
}

// The reference's initial state: these parameters and statistics, momenta 0.
inline ReferenceState reference_state(const TestTensors& tensors) {
  ReferenceState state;
  for (const auto& parameter : tensors.parameters) {
    state.parameters.push_back(to_double(parameter));
    state.momenta.emplace_back(parameter.size());
  }
  for (const auto& statistic : tensors.statistics) state.statistics.push_back(to_double(statistic));
  return state;
}

}  // namespace plumb
