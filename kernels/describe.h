// describe(Graph, …) -> Program: which steps train this Graph on a device with these limits. Pure: needs no
// device and no vendor's header; the same code serves a dry run and the real run.
#pragma once

#include <string>

#include "kernels/program.h"
#include "kernels/targets.h"
#include "models/graph.h"

namespace plumb {

enum class Optimizer { sgd, nag };

struct DescribeOptions {
  Precision precision = Precision::fp32;
  bool load_batch_every_step = false;  // real images: a load_batch step on the input lane
  bool fuse = true;                    // cuda: cuDNN's fused engines where the device has them
  bool scale_loss = false;             // fp16: look for overflows, and skip the step where there is one
  bool fp32_head = false;              // fp16, bf16: operations from Graph::head_begin on in fp32
};

// Throws Error(usage) if the device lacks the precision, naming those it has.
Program describe(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits);

// For people: which passes fused engines save, layer by layer, and why not more. Empty on a cpu.
std::string fusion_text(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits);

namespace cpu {
Program describe(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits);
}
namespace cuda {
Program describe(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits);
}

}  // namespace plumb
