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

// Puts gradients (buffers with Role::gradient) into buckets, ordered by the last instruction of backward that
// uses each, and adds one allreduce instruction per bucket on the communication lane right after the last use
// of its last gradient. Backward therefore reads the rank's own gradients. If the reduced dtype differs from
// the gradients', a bucket gets a staging buffer, a cast into it before the allreduce and a cast back before
// the first update. The casts divide by the world size and multiply again, so an fp16 sum overflows only if
// the mean does (beyond 65504). Collectives sum; the update averages (StepState::gradient_scale). Gradients
// of different dtypes never share a bucket.
//
// A bucket is one buffer, named "bucket0" and so on in reduction order; its gradients become views, each at a
// multiple of 64 bytes. The collective includes the gaps, which must hold finite numbers (zeros).
//
// Gradients of sharded tensors (Buffer::sharded) are complete on their rank: they stay unchanged, and any
// instruction may read them. Collectives already in the Program keep their places.
//
// FindOverflow and updates read gradients after the reduction and the cast back. All ranks have the same bits
// (MPI: "all processes ... receive identical results", section All-Reduce; NCCL forwards each finished sum
// unchanged, github.com/NVIDIA/nccl/issues/855), so all ranks find the same overflow. If FindOverflow also
// reads gradients of sharded tensors, an allreduce after it sums the ranks' overflow buffers
// ("overflow.allreduce").
//
// Requires final buffer sizes (Device::prepare has run). Throws Error(internal) if no instruction writes a
// gradient, or if a gradient is a view already.
Program add_gradient_reduction(Program program, const GradientReductionOptions& options);

// Bytes sent per rank and iteration with ring collectives: S * 2(n - 1) / n for an allreduce, S * (n - 1) / n
// for an allgather or reduce-scatter (S: bytes of the whole buffer, n: ranks). This is the minimum for any
// algorithm (Patarasuk and Yuan 2009, doi:10.1016/j.jpdc.2008.09.002).
double sent_bytes_per_rank(const Program& program, int world_size);

}  // namespace plumb
