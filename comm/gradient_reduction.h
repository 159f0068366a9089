// The pass that adds gradient allreduces to a Program.
#pragma once

#include "kernels/program/program.h"
#include "models/buckets.h"

namespace plumb {

enum class ReduceDType { same, fp32, fp16 };

struct GradientReductionOptions {
  BucketOptions buckets;  // limits count bytes in the gradients' own dtype, not the reduced one
  ReduceDType dtype = ReduceDType::same;
  int world_size = 1;   // number of ranks in the sum
  bool overlap = true;  // false: every collective after the last backward instruction
};

// Puts gradients (buffers with Role::gradient) of one dtype into buckets, ordered by the last instruction of
// backward that uses each, and adds one allreduce per bucket right after the last use of its last gradient. A
// bucket is one buffer, named "bucket0" and so on in reduction order; its gradients become views, each at a
// multiple of 64 bytes. The collective includes the gaps, which must hold finite numbers (zeros).
//
// If the reduced dtype differs from the gradients', a bucket gets a staging buffer, a cast into it before the
// allreduce and a cast back before the first update. The casts divide by the world size and multiply again,
// so an fp16 sum overflows only if the mean does (beyond 65504). The update averages
// (StepState::gradient_scale).
//
// Gradients of sharded tensors (Buffer::sharded) are complete on their rank and stay unchanged. FindOverflow
// reads gradients after the reduction: all ranks have the same bits (MPI: "all processes ... receive
// identical results", section All-Reduce; NCCL: github.com/NVIDIA/nccl/issues/855). If it also reads sharded
// ones, an allreduce after it sums the ranks' overflow buffers ("overflow.allreduce").
//
// Requires final buffer sizes (Device::prepare has run). Throws Error(internal) if no instruction writes a
// gradient, or if a gradient is a view already.
Program add_gradient_reduction(Program program, const GradientReductionOptions& options);

// Bytes sent per rank and iteration with ring collectives: S * 2(n - 1) / n for an allreduce, S * (n - 1) / n
// for an allgather or reduce-scatter (S: bytes of the whole buffer, n: ranks). This is the minimum for any
// algorithm (Patarasuk and Yuan 2009, doi:10.1016/j.jpdc.2008.09.002).
double sent_bytes_per_rank(const Program& program, int world_size);

}  // namespace plumb
