// Passes over memory saved by fused engines of cuDNN and cuBLASLt and by our own kernels: what each GPU
// supports, and the resulting plan for each layer.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "kernels/program/describe.h"
#include "kernels/program/program.h"
#include "kernels/program/targets.h"
#include "models/graph.h"

namespace plumb::cuda {

// Engines that save passes over memory, found by building each pattern with cuDNN 9.19 for the NHWC
// convolutions of ResNet-50 at batch 256 (tests/cuda_plans builds them again). DgradDreluBNBwdWeight builds
// for all of sm_80 to sm_120, but except on sm_90 its workspace takes 4 bytes per element and more (c = 64,
// 56 x 56: 207 MB on sm_80, 414 MB on sm_100, 1.6 MB on sm_90): it writes the gradient there as f32 and reads
// it again, which adds 4 passes and saves 1. sm_100 has an engine for statistics alone. Statistics are summed
// in any order: on an H100 (cuDNN 9.19) they differ from run to run in the last bits, though only sm_100's
// engine carries the note NONDETERMINISTIC. All its patterns need them, so --deterministic uses none. The
// table knows no shapes. Tuning times each pattern against the plain instructions, layer by layer
// (choose_fusion.h); a pattern without an engine for a shape is dropped there (DescribeOptions::plain).
//
// The gradient of a block's end is completed while a product is computed, + the other gradient, masked: by
// our own kernel (block_end.h) or cuBLASLt (CUBLASLT_EPILOGUE_DRELU), which lists no algorithm without a GPU.
// Our own kernel also sums it for the norm that ends the block, and for its shortcut's.
//
// The convolution in front of the norm that ends a block can stay without an output, and then that of its
// shortcut, too: the norm's statistics follow from its input's products
// (kernels/program/instructions/block_end.h). The gradient of the block's output comes masked and summed, by
// a convolution as above or by an instruction of its own. Our own kernels for halves need sm_80; elsewhere
// cuBLASLt computes the rest, in NHWC.
struct FusionSupport {
  bool statistics = false;                // convolution, then sums over its output (genstats)
  bool normalized_input = false;          // scale, bias, ReLU, then the above (ConvBNfprop)
  bool normalized_input_weights = false;  // scale, bias, ReLU, then the weights' gradient (ConvBNwgrad)
  bool norm_backward_data = false;        // backward-data, ReLU, the norm's sums (DgradDreluBNBwdWeight)
  bool block_end_gradient = false;        // backward-data, the other gradient, ReLU; 1x1 with stride 1 only
  bool product_norm = false;              // a block's end without its convolutions' outputs; NHWC
  std::string gpu;                        // "sm_90"
  std::string why_none;                   // reason, if cuDNN has nothing
};
// compute_capability: 90 for sm_90.
FusionSupport fusion_support(int compute_capability, Precision precision, bool deterministic);
// The same, or nothing if DescribeOptions::fuse says so.
FusionSupport support_of(const DescribeOptions& options, const DeviceLimits& limits);

// Fusion of one operation of a Graph. Without fused engines: only what own kernels do for another norm.
struct LayerFusion {
  // For a convolution.
  ConvFusion forward;
  bool weights_normalize_input = false;  // the weight gradient also reads the norm's input
  bool backward_through_norm = false;    // backward-data includes the ReLU and the norm's sums
  // The block's end whose gradient backward-data completes: it adds the other reader's and applies the ReLU.
  std::optional<std::size_t> block_end;
  bool sums_for_end = false;  // … and sums it for that norm
  // The norm behind it, if the output, which only that norm reads, is not stored: a block's last norm or its
  // shortcut's.
  std::optional<std::size_t> norm_of_product;
  bool by_products = false;  // … and a library's products take the place of our own kernels

  // For a convolution, a max pool, or a norm that ends a block: op of the norm that it partly computes, and
  // whose output it would read otherwise. A block's end normalizes its shortcut, and does its backward.
  std::optional<std::size_t> norm_in_front;

  // For a norm.
  std::optional<std::size_t> statistics_by;  // op of the preceding convolution that gathers the statistics
  bool inside_conv = false;                  // normalized by the first convolution that reads it
  bool stored = true;                        // output is in memory
  bool sums_output = false;                  // for the product that reads it
  std::optional<std::size_t> product;        // op of the convolution in front, whose output is not stored
  bool backward_by_conv = false;             // its sums are computed with the gradient of its output
  bool backward_by_end = false;              // a shortcut's: the block's end does it all
  bool masked_by_conv = false;               // its output's gradient comes summed and masked: see block_end
  bool masks_gradient = false;               // an instruction of its own masks and sums that, for its product
  std::optional<std::size_t> backward_through_pool;  // op of the max pool behind it

  // For a max pool.
  bool backward_by_norm = false;  // the norm in front goes back through it

  std::string why_not_more;
  std::string why_plain_gradient;  // a block's end: why no convolution masks or sums its gradient, if tried
};

// One per op of the Graph. A norm's output goes unstored only if the weight gradient doesn't read it either.
std::vector<LayerFusion> plan_fusion(const Graph& graph, const DescribeOptions& options,
                                     const DeviceLimits& limits);

}  // namespace plumb::cuda
