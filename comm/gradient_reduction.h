// The pass that adds gradient exchange to a Program.
#pragma once

#include "comm/buckets.h"
#include "kernels/program.h"

namespace plumb {

enum class ReduceDType { same, fp32, fp16 };

struct GradientReductionOptions {
  BucketOptions buckets;
  ReduceDType dtype = ReduceDType::same;
  bool overlap = true;  // false: every collective after the last backward step
};

// Lays gradients (buffers with Role::gradient) out in buckets, in the order in which the Program's last writer of
// each stands, and puts one allreduce step per bucket on the communication lane right after the last writer of its
// last gradient. With another dtype than the gradients' own, a bucket gets a staging buffer, a cast into it
// before the allreduce and a cast back before the first update. Sums: averaging is the update's (StepState::gradient_scale).
// Requires: every gradient has one writer, and no step reads a gradient but updates.
Program add_gradient_reduction(Program program, const GradientReductionOptions& options);

}  // namespace plumb
