// The fused patterns of kernels/cuda/fusion.h around a plain convolution.
#pragma once

#include <array>
#include <optional>

#include "kernels/cuda/conv.h"

namespace plumb::cuda {

enum class FusedGraph {
  statistics,
  normalized_input,
  residual_input,
  normalized_input_weights,
  norm_backward_data
};
inline constexpr std::array kFusedGraphs{
    FusedGraph::statistics, FusedGraph::normalized_input, FusedGraph::residual_input,
    FusedGraph::normalized_input_weights, FusedGraph::norm_backward_data};
const char* name_of(FusedGraph pattern);  // for people

// Nothing if this convolution is of another kind than the pattern's, neither 1x1 nor 3x3, or grouped;
// residuals are added in front of 1x1 ones with stride 1 only.
std::optional<ConvProblem> fused(FusedGraph pattern, ConvProblem plain);

}  // namespace plumb::cuda
