#include "tests/cuda_sass/wanted.h"

#include "kernels/cuda/depthwise_shape.h"
#include "kernels/cuda/margin_partition.h"
#include "kernels/cuda/norm_partition.h"

namespace plumb::sass {
namespace {

using cuda::kDepthwiseThreads;
using cuda::kMarginThreads;
using cuda::kNormThreads;

// Where a block's threads merge their sums, each second one has room for so many floats.
constexpr int merge_bytes(int floats, int threads) {
  return floats * 4 * threads / 2;
}

constexpr int kWarpRowThreads = 256, kElementThreads = 256, kPoolThreads = 128;

const std::vector<Wanted> kTable{
    // Norms. Wide loads: pixels that a thread asks for at once, times tensors. Masks have a bit per element.
    {.kernel = "norm_statistics<*f*>",
     .wide_loads = 4,
     .threads = kNormThreads,
     .dynamic_shared_bytes = merge_bytes(17, kNormThreads)},
    {.kernel = "norm_apply<*f*,false>",
     .wide_loads = 8,
     .wide_stores = 4,
     .narrow = {"store 1"},
     .threads = kNormThreads,
     .why = "a byte of the mask for 8 channels"},
    {.kernel = "norm_apply<*f*,true>", .wide_loads = 4, .wide_stores = 4, .threads = kNormThreads},
    {.kernel = "norm_backward_sums<*f*,(Source)0>",
     .wide_loads = 4,
     .wide_stores = 2,
     .narrow = {"load 1"},
     .threads = kNormThreads,
     .dynamic_shared_bytes = merge_bytes(17, kNormThreads),
     .why = "a byte of the mask for 8 channels"},
    {.kernel = "norm_backward_sums<*f*,(Source)1>",
     .wide_loads = 6,
     .wide_stores = 2,
     .narrow = {"load 1"},
     .threads = kNormThreads,
     .dynamic_shared_bytes = merge_bytes(17, kNormThreads),
     .why = "a byte of the mask for 8 channels"},
    {.kernel = "norm_backward_sums<*f*,(Source)2>",
     .wide_loads = 4,
     .threads = kNormThreads,
     .dynamic_shared_bytes = merge_bytes(17, kNormThreads)},
    {.kernel = "norm_backward_sums<*f*,(Source)3>",
     .wide_loads = 4,
     .threads = kNormThreads,
     .dynamic_shared_bytes = merge_bytes(25, kNormThreads)},
    {.kernel = "norm_backward_sums<*f*,(Source)5>",
     .wide_loads = 8,
     .narrow = {"load 1"},
     .threads = kNormThreads,
     .dynamic_shared_bytes = merge_bytes(25, kNormThreads),
     .why = "a byte of the mask for 8 channels"},
    {.kernel = "norm_backward_apply<*f*,(Source)5>",
     .wide_loads = 6,
     .wide_stores = 4,
     .narrow = {"load 1"},
     .threads = kNormThreads,
     .why = "a byte of the mask for 8 channels"},
    {.kernel = "norm_backward_apply<*f*,(Source)*>",
     .wide_loads = 4,
     .wide_stores = 2,
     .narrow = {"load 1"},
     .threads = kNormThreads,
     .why = "a byte of the mask for 8 channels"},
    // Norms in NCHW; planes of 7 x 7 pixels are accessed element by element (Planes<1>).
    {.kernel = "norm_statistics<Planes<4>>",
     .wide_loads = 4,
     .threads = kNormThreads,
     .dynamic_shared_bytes = merge_bytes(3, kNormThreads)},
    {.kernel = "norm_apply<Planes<4>,*>", .wide_loads = 4, .wide_stores = 4, .threads = kNormThreads},
    {.kernel = "norm_backward_sums<Planes<4>,(Source)*>",
     .wide_loads = 4,
     .threads = kNormThreads,
     .dynamic_shared_bytes = merge_bytes(4, kNormThreads)},
    {.kernel = "norm_backward_apply<Planes<4>,(Source)*>",
     .wide_loads = 4,
     .wide_stores = 2,
     .threads = kNormThreads},
    // Pools. The place that won has a byte per element.
    {.kernel = "max_pool_forward<f32,3>",
     .wide_loads = 9,
     .wide_stores = 1,
     .narrow = {"store 4"},
     .straight = true,
     .why = "the winners of 4 channels"},
    {.kernel = "max_pool_forward<*f16,3>",
     .wide_loads = 9,
     .wide_stores = 1,
     .narrow = {"store 8"},
     .straight = true,
     .threads = kPoolThreads,
     .why = "the winners of 8 channels"},
    {.kernel = "max_pool_backward<f32>",
     .wide_loads = 2,
     .narrow = {"load 4"},
     .why = "the winners of 4 channels"},
    {.kernel = "max_pool_backward<*f16>",
     .wide_loads = 2,
     .narrow = {"load 8"},
     .threads = kPoolThreads,
     .why = "the winners of 8 channels"},
    {.kernel = "average_forward<f32>", .wide_loads = 4},
    {.kernel = "average_forward<*f16>", .wide_loads = 4, .threads = kPoolThreads},
    {.kernel = "average_backward<f32>", .wide_stores = 4},
    {.kernel = "average_backward<*f16>", .wide_stores = 4, .threads = kPoolThreads},
    // The update, and the search for overflows.
    {.kernel = "update<*>", .wide_loads = 5, .wide_stores = 5, .threads = kElementThreads},
    {.kernel = "find_overflow", .wide_loads = 2, .threads = kElementThreads},
    {.kernel = "update_rows<*f16>", .wide_loads = 5, .wide_stores = 4, .threads = kWarpRowThreads},
    {.kernel = "update_rows<f32>", .wide_loads = 3, .wide_stores = 2},
    // Margin heads.
    {.kernel = "margin_shares<*>",
     .wide_loads = 5,
     .narrow = {"load 4"},
     .threads = kMarginThreads,
     .why = "norms of the last classes, whose number needn't be a multiple of 4"},
    {.kernel = "margin_gradient<*>",
     .wide_loads = 5,
     .wide_stores = 4,
     .narrow = {"load 4"},
     .threads = kMarginThreads,
     .why = "norms of the last classes; what belongs to a target"},
    {.kernel = "class_norms<*f16>", .wide_loads = 1, .threads = kWarpRowThreads},
    {.kernel = "class_norms<f32>", .wide_loads = 1},
    {.kernel = "project_rows<*f16>", .wide_loads = 2, .wide_stores = 1, .threads = kWarpRowThreads},
    {.kernel = "project_rows<f32>", .wide_loads = 2, .wide_stores = 1},
    {.kernel = "gather_rows<*f16>", .wide_loads = 2, .wide_stores = 1, .threads = kWarpRowThreads},
    {.kernel = "gather_rows<f32>", .wide_loads = 1, .wide_stores = 1},
    // Passes over whole tensors.
    {.kernel = "accumulate<*>",
     .wide_loads = 2,
     .wide_stores = 1,
     .straight = true,
     .threads = kElementThreads},
    {.kernel = "cast<*>", .wide_loads = 1, .wide_stores = 1, .straight = true, .threads = kElementThreads},
    {.kernel = "pack_batch<*16,4>",
     .narrow = {"load 1", "load 4", "store 4", "store 8"},
     .straight = true,
     .threads = kElementThreads,
     .why = "3 bytes of a pixel, side by side with its neighbours', and its 4 channels; a label"},
    {.kernel = "pack_batch<*>",
     .wide_stores = 1,
     .narrow = {"load 1", "load 4", "store 4"},
     .straight = true,
     .threads = kElementThreads,
     .why = "3 bytes of a pixel, side by side with its neighbours'; a label"},
    {.kernel = "dropout<*>", .wide_loads = 1, .wide_stores = 1, .threads = kElementThreads},
    // Depthwise convolutions.
    {.kernel = "convolve_3x3<*,1,2>", .wide_loads = 4, .wide_stores = 2, .threads = kDepthwiseThreads},
    {.kernel = "convolve_3x3<*,2,1>", .wide_loads = 6, .wide_stores = 1, .threads = kDepthwiseThreads},
    {.kernel = "spread_3x3<*>", .wide_loads = 2, .wide_stores = 4, .threads = kDepthwiseThreads},
    {.kernel = "convolve_any<*f16>", .wide_loads = 8, .threads = kDepthwiseThreads},
    {.kernel = "convolve_any<f32>", .wide_loads = 8},
    {.kernel = "spread_any<*f16>", .wide_loads = 2, .threads = kDepthwiseThreads},
    {.kernel = "spread_any<f32>", .wide_loads = 2},
    {.kernel = "weights_3x3<*f16,*>",
     .wide_loads = 4,
     .threads = kDepthwiseThreads,
     .dynamic_shared_bytes = merge_bytes(73, kDepthwiseThreads)},
    {.kernel = "weights_3x3<f32,*>",
     .wide_loads = 4,
     .threads = kDepthwiseThreads,
     .dynamic_shared_bytes = merge_bytes(37, kDepthwiseThreads)},
    {.kernel = "weights_any<*f16>", .wide_loads = 2, .threads = kDepthwiseThreads},
    {.kernel = "weights_any<f32>", .wide_loads = 2},
    // A ResNet's first convolution: reads by copies that pass the registers.
    {.kernel = "stem_forward<*>",
     .wide_stores = 8,
     .narrow = {"load 8"},
     .stack_bytes = 16,
     .why = "taps of 4 channels, once; on sm_80 4 registers beside a lane's 96 sums"},
    {.kernel = "stem_weights<*>", .narrow = {"store 8"}, .why = "sums of two channels, once"},
    // The gradient of a block's end: likewise.
    {.kernel = "block_end<*>", .wide_stores = 8, .straight = true},
    // Local memory that is no spilled register.
    {.kernel = "finish_rows<*>",
     .stack_bytes = 40,
     .why = "sine and cosine of an f64 reduce large arguments by an array; one target per image"},
    {.kernel = "synthetic_batch<*>",
     .stack_bytes = 32,
     .why = "sine and cosine of an f32 reduce large arguments by an array; runs once, before training"},
};

}  // namespace

const std::vector<Wanted>& wanted_kernels() {
  return kTable;
}

}  // namespace plumb::sass
