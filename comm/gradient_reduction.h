// The pass that adds gradient exchange to a Program.
#pragma once

#include "comm/buckets.h"
#include "kernels/program.h"

namespace plumb {

enum class ReduceDType { same, fp32, fp16 };

struct GradientReductionOptions {
  BucketOptions buckets;  // limits count the gradients' own bytes, whatever dtype is reduced
  ReduceDType dtype = ReduceDType::same;
  int world_size = 1;   // ranks that are summed over
  bool overlap = true;  // false: every collective after the last backward step
};

// Lays gradients (buffers with Role::gradient) out in buckets, in the order in which the Program's last
// writer of each stands, and puts one allreduce step per bucket on the communication lane right after the
// last writer of its last gradient. With another dtype than the gradients' own, a bucket gets a staging
// buffer, a cast into it before the allreduce and a cast back before the first update; the casts divide by
// the world size and multiply again, so that a sum in fp16 overflows only where a mean would (beyond 65504).
// Sums: averaging is the update's (StepState::gradient_scale). Gradients of different dtypes never share a
// bucket.
//
// A bucket is one buffer, "bucket0" and so on in the order in which they are reduced; its gradients become
// views, each at a multiple of 64 bytes. The collective covers the gaps too: they must hold finite numbers
// (zeros).
//
// Gradients of sharded tensors (Buffer::sharded) are complete on their rank: they stay as they are, and
// anybody may read them. Collectives that the Program has already keep their places.
//
// find_overflow and updates read gradients when they are reduced and cast back. Those are the same bits on
// all ranks (MPI: "all processes ... receive identical results", section All-Reduce; NCCL hands each finished
// sum on unchanged, github.com/NVIDIA/nccl/issues/855), so that all ranks find the same overflow. Where
// find_overflow also reads gradients of sharded tensors, an allreduce behind it adds up the ranks' overflow
// buffers ("overflow.allreduce").
//
// Requires what bytes say is final (Device::prepare has run). Throws Error(internal) if no step writes a
// gradient, if one is a view already, or if another step than find_overflow and updates reads one after its
// last writer.
Program add_gradient_reduction(Program program, const GradientReductionOptions& options);

// Bytes that each rank sends per step when every collective runs as a ring: the sum over collectives of S
// bytes and n ranks of S * 2(n - 1) / n for an allreduce and of S * (n - 1) / n for an allgather or a
// reduce-scatter (S: the whole buffer), the least that any algorithm can do (Patarasuk and Yuan 2009,
// doi:10.1016/j.jpdc.2008.09.002).
double sent_bytes_per_rank(const Program& program, int world_size);

}  // namespace plumb
