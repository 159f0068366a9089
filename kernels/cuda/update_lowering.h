// The steps that end an iteration on a GPU, once every gradient is complete.
#pragma once

#include "kernels/lowering.h"

namespace plumb::cuda {

// One step looks for overflows, if the loss is scaled; one updates all parameters that are trained, one more
// for each set of sampled centres those rows; the last one makes the next state.
void lower_update(Lowering& lowering, bool scale_loss);

}  // namespace plumb::cuda
