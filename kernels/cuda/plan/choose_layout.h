// Whether a GPU's tensors are NHWC or NCHW.
#pragma once

#include "kernels/program/describe.h"
#include "kernels/program/layout.h"
#include "kernels/program/targets.h"
#include "models/graph.h"

namespace plumb::cuda {

// DescribeOptions::layout if given. Else NCHW for strict fp32 on GPUs before compute capability 9.0: cuDNN's
// Winograd engines, which later GPUs lack, need no copies of tensors there
// (docs/how-to/new-gpu.md#layout-of-strict-fp32). NHWC for all other precisions, whose engines are made for
// it, and for networks with depthwise convolutions, for which our kernels have only NHWC. Throws Error(usage)
// if NCHW is asked for where it isn't supported.
TensorLayout choose_layout(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits);

}  // namespace plumb::cuda
