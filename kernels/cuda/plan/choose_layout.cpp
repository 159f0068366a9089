#include "kernels/cuda/plan/choose_layout.h"

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "kernels/cuda/plan/depthwise_shape.h"

namespace plumb::cuda {
namespace {

constexpr int kFirstWithoutWinograd = 90;

bool has_depthwise(const Graph& graph) {
  return std::ranges::any_of(graph.ops, [&](const Op& op) {
    const Conv* conv = std::get_if<Conv>(&op);
    return conv && is_depthwise(graph, *conv);
  });
}

}  // namespace

TensorLayout choose_layout(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits) {
  const bool possible = options.precision == Precision::fp32 && !has_depthwise(graph);
  if (!options.layout)
    return possible && limits.compute_capability < kFirstWithoutWinograd ? TensorLayout::nchw
                                                                         : TensorLayout::nhwc;
  if (*options.layout == TensorLayout::nchw && !possible)
    throw Error(
        ExitCode::usage,
        "--layout nchw needs --fp32 and no depthwise convolutions, and this is {} in {}; leave it out",
        graph.model, name_of(options.precision));
  return *options.layout;
}

}  // namespace plumb::cuda
