// The fused patterns of kernels/cuda/plan/fusion.h around a plain convolution.
#pragma once

#include <array>
#include <optional>

#include "kernels/cuda/vendors/conv.h"

namespace plumb::cuda {

enum class FusedGraph { statistics, normalized_input, normalized_input_weights, norm_backward_data };
inline constexpr std::array kFusedGraphs{FusedGraph::statistics, FusedGraph::normalized_input,
                                         FusedGraph::normalized_input_weights,
                                         FusedGraph::norm_backward_data};
const char* name_of(FusedGraph pattern);  // for people
ConvPass plain_pass(FusedGraph pattern);  // the convolution it replaces

// Null if this convolution doesn't fit the pattern, is neither 1x1 nor 3x3, or is grouped.
std::optional<ConvProblem> fused(FusedGraph pattern, ConvProblem plain);

// Fused engines that describe() may request but cuDNN 9.19 lacks: those of sm_90 take no tensor of more than
// 2^31 elements. Those of sm_80 and sm_89 take everything that fits in memory, as do plain engines on any
// GPU.
bool lacks_engine(int compute_capability, const ConvProblem& problem);

}  // namespace plumb::cuda
