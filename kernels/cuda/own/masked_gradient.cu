#include "kernels/cuda/own/norm.h"
#include "kernels/cuda/own/norm_tile.h"

namespace plumb::cuda {
namespace {

// A block masks its channels over its part of the tensor and sums them; the last block of a tile settles the
// sums. Per element in a half type: reads 2 bytes and 1/8 of mask, 2 more for a second gradient or a fourth
// of that if it has every second pixel of every second row, writes 2; twice that in f32. Bound by memory.
template <typename T>
__global__ void __launch_bounds__(kNormThreads, kBlocksAtOnce)
    masked_gradient(GradientMask from, NormPartition partition) {
  Place place = place_of(partition, blockIdx);
  place.first = (place.first - place.channel) / partition.channels;  // in pixels
  place.stride = partition.rows;
  OutputSums own;
  for_steps<kAtOnceOfSeveral<T>>(place, [&](auto at_once, std::int64_t first) {
    const auto pixel = [&](int u) { return first + u * place.stride; };
    const auto element = [&](std::int64_t of_pixel) { return of_pixel * partition.channels + place.channel; };
    Group<T> d_out[at_once.value], second[at_once.value] = {};
    unsigned passed[at_once.value];
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) {
      d_out[u] = load_packed<kNormGroup>(as<T>(from.d_out) + element(pixel(u)));
      passed[u] = from.mask[element(pixel(u)) / kNormGroup];
    }
    if (from.second_d_out) {
#pragma unroll
      for (int u = 0; u < at_once.value; ++u) {
        const std::int64_t at =
            from.grid.shift == 0 ? pixel(u) : from.grid.index_of(static_cast<int>(pixel(u)));
        if (at >= 0) second[u] = load_packed<kNormGroup>(as<T>(from.second_d_out) + element(at));
      }
    }
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) {
      float gradient[kNormGroup];
#pragma unroll
      for (int c = 0; c < kNormGroup; ++c) {
        const float sum = as_factor<T>(d_out[u].at(c) + second[u].at(c), from.tf32);
        gradient[c] = (passed[u] >> c & 1U) != 0 ? sum : 0;
        own.of[0][c] += to_float(from_float<T>(gradient[c]));
      }
      store(as<T>(from.d_in) + element(pixel(u)), gradient);
    }
  });
  settle_sums(own, partition, from.scratch, from.sums);
}

}  // namespace

void launch_masked_gradient(const NormPartition& partition, DType dtype, const GradientMask& gradient,
                            cudaStream_t stream) {
  with_type_of(dtype, [&]<typename T>(T) {
    const dim3 block = pass_block(partition);
    gpu::launch(masked_gradient<T>, pass_grid(partition), block, merge_bytes<OutputSums>(block), stream,
                gradient, partition);
  });
}

}  // namespace plumb::cuda
