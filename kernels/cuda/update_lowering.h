// The steps that end an iteration on a GPU, once every gradient is complete.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/lowering.h"

namespace plumb::cuda {

// Class centres of which a step has updated a sample.
struct SampledCentres {
  std::size_t op = 0;  // the margin loss, index into Graph::ops
  BufferId samples = 0, sample_count = 0;
};

// One step looks for overflows, if the loss is scaled; one updates all parameters that are trained, one more
// for each set of sampled centres those rows; the last one makes the next state.
void lower_update(Lowering& lowering, const std::vector<SampledCentres>& sampled, bool scale_loss);

}  // namespace plumb::cuda
