// The instructions at the end of an iteration on a GPU, once every gradient is complete.
#pragma once

#include "kernels/lowering.h"

namespace plumb::cuda {

// One instruction searches for overflows, if the loss is scaled; one updates all trained parameters; one per
// set of sampled centres updates those rows; the last one computes the next state.
void lower_update(Lowering& lowering, bool scale_loss);

}  // namespace plumb::cuda
