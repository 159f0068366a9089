// Passes over memory saved by fused engines of cuDNN and cuBLASLt and by our own kernels: what each GPU
// supports, and the resulting plan for each layer.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <variant>
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
// engine carries the note NONDETERMINISTIC. All its patterns need them, so --deterministic uses none.
//
// Block ends (kernels/program/instructions/block_end.h): our own kernels for halves need sm_80; elsewhere
// cuBLASLt computes the products.
struct FusionSupport {
  bool statistics = false;                // convolution, then sums over its output (genstats)
  bool normalized_input = false;          // scale, bias, ReLU, then the above (ConvBNfprop)
  bool normalized_input_weights = false;  // scale, bias, ReLU, then the weights' gradient (ConvBNwgrad)
  bool norm_backward_data = false;        // backward-data, ReLU, the norm's sums (DgradDreluBNBwdWeight)
  bool block_end_gradient = false;        // backward-data, the other gradient, ReLU; 1x1 with stride 1 only
  bool product_norm = false;              // a block's end without its convolutions' outputs
};
// compute_capability: 90 for sm_90.
FusionSupport fusion_support(int compute_capability, Precision precision, bool deterministic);

// A convolution. Members that are ops are indices into Graph::ops.
struct FusedConv {
  struct PlainGradient {};
  // Backward-data includes the ReLU and the sums of the norm in front.
  struct ThroughNorm {
    std::size_t norm;
  };
  // Backward-data completes the gradient of a block's end: it adds the other reader's and applies the ReLU.
  struct CompletedGradient {
    std::size_t end;
    bool sums = false;  // … and sums it for that norm
  };
  bool gathers_statistics = false;  // of its output
  std::optional<std::size_t>
      normalizes;  // norm in front, whose output it would read, in the weight gradient too
  std::variant<PlainGradient, ThroughNorm, CompletedGradient> data_gradient;
};

// A convolution whose output is not stored: only a block's last norm reads it, or its shortcut's.
struct UnstoredConv {
  std::size_t norm;
  std::optional<std::size_t>
      norm_in_front;         // of a block's last convolution: it sums its output for the product
  bool by_products = false;  // a library's products take the place of our own kernels
};

struct FusedNorm {
  enum class Statistics { own, by_conv, by_product };
  // not_stored: a max pool or a block's end normalizes it.
  enum class Output { stored, inside_conv, not_stored };
  struct TwoPasses {};  // for a shortcut, too
  struct OnePass {};    // a convolution computes the sums with the gradient of the output
  struct ByEnd {};      // a shortcut's: the block's end does it all
  struct ThroughPool {
    std::size_t pool;  // behind it
  };
  // The convolution in front does the rest.
  struct ByProduct {
    bool
        masks_gradient;  // an instruction of its own masks and sums the output's gradient; else a convolution
  };
  Statistics statistics = Statistics::own;
  std::size_t conv = kNone;  // in front, by which the statistics come
  Output output = Output::stored;
  bool sums_output = false;             // for the product that reads it
  std::optional<std::size_t> shortcut;  // norm of the shortcut that this block's end normalizes
  bool gradient_comes_masked = false;   // from a convolution: FusedConv::CompletedGradient
  std::variant<TwoPasses, OnePass, ByEnd, ThroughPool, ByProduct> backward;

  bool is_by_product() const { return statistics == Statistics::by_product; }
  bool masks_gradient() const {
    const auto* product = std::get_if<ByProduct>(&backward);
    return product && product->masks_gradient;
  }
};

// A max pool.
struct FusedPool {
  std::size_t norm;  // in front; the pool normalizes its input, and the norm goes back through the pool
};

// Fusion of one operation of a Graph. Without fused engines: only what own kernels do for another norm.
using LayerFusion = std::variant<std::monostate, FusedConv, UnstoredConv, FusedNorm, FusedPool>;

// One per op of the Graph. A norm's output goes unstored only if the weight gradient doesn't read it either.
std::vector<LayerFusion> plan_fusion(const Graph& graph, const DescribeOptions& options,
                                     const DeviceLimits& limits);

struct InstructionCost {
  double seconds = 0;
  std::string failure;  // why no engine computes the instruction; empty if one does
};
using CostOf = std::function<InstructionCost(const Program&, const Instruction&)>;

// Exceptions to DescribeOptions::fuse. Greedy, pattern by pattern in the order of the Graph. A convolution
// drops a fused pattern if the whole training step then has fewer instructions without an engine, or equally
// many and takes less time. The cost of an instruction must depend only on the work it does, so that layers
// of the same shape come out alike.
std::vector<PlainLayer> choose_fusion(const Graph& graph, const DescribeOptions& options,
                                      const DeviceLimits& limits, const CostOf& cost_of);

}  // namespace plumb::cuda
