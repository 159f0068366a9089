// Which passes over memory cuDNN's fused engines and kernels of our own save: what a GPU has, and what that
// makes of each layer.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "kernels/describe.h"
#include "kernels/program.h"
#include "kernels/targets.h"
#include "models/graph.h"

namespace plumb::cuda {

// Engines that save passes over memory, found by building each pattern with cuDNN 9.19 for the NHWC
// convolutions of ResNet-50 at batch 256 (tests/cuda_plans builds them again). DgradDreluBNBwdWeight builds
// for sm_80 to sm_120, too, but with a workspace of 4 bytes per element and more (c = 64, 56 x 56: 207 MB on
// sm_80, 414 MB on sm_100, 1.6 MB on sm_90): it writes the gradient there as f32 and reads it again, 4 passes
// more, where it saves 1. sm_100 has an engine for statistics alone, which adds up in any order:
// --deterministic leaves it out. The table knows no shapes: tuning times each pattern against the plain
// steps, layer by layer (choose_fusion.h), and a pattern that has no engine for a shape gives way there
// (DescribeOptions::plain).
struct FusionSupport {
  bool statistics = false;                // convolution, then sums over what it wrote (genstats)
  bool normalized_input = false;          // scale, bias, ReLU, then the above (ConvBNfprop)
  bool residual_input = false;            // scale, bias, add, ReLU, then the above; 1x1 with stride 1 only
  bool normalized_input_weights = false;  // scale, bias, ReLU, then the weights' gradient (ConvBNwgrad)
  bool norm_backward_data = false;        // backward-data, ReLU, the norm's sums (DgradDreluBNBwdWeight)
  std::string gpu;                        // "sm_90"
  std::string why_none;                   // where nothing is there
};
// compute_capability: 90 for sm_90.
FusionSupport fusion_support(int compute_capability, Precision precision, bool deterministic);
// … or nothing of it, if DescribeOptions::fuse says so.
FusionSupport support_of(const DescribeOptions& options, const DeviceLimits& limits);

// What becomes of one operation of a Graph. Without fused engines: what own kernels normalise on the way.
struct LayerFusion {
  // Of a convolution.
  ConvFusion forward;
  bool weights_normalize_input = false;  // the weights' gradient, too, reads the norm's input
  bool backward_through_norm = false;    // backward-data goes on through the ReLU and the norm's sums

  // Of a convolution, a max pool, or a norm that ends a block: op of the norm that it does a part of, whose
  // output it would read otherwise. A block's end normalises its shortcut.
  std::optional<std::size_t> norm_in_front;

  // Of a norm.
  std::optional<std::size_t> statistics_by;  // op of the convolution in front of it that sums them up
  bool inside_conv = false;                  // the convolution that reads it first normalises it
  bool stored = true;                        // its output lies in memory
  bool backward_by_conv = false;             // its sums come with the gradient of its output

  std::string why_not_more;
};

// One for each op of the Graph. A norm's output is not stored only if the weights' gradient can do without
// it, too.
std::vector<LayerFusion> plan_fusion(const Graph& graph, const DescribeOptions& options,
                                     const DeviceLimits& limits);

}  // namespace plumb::cuda
