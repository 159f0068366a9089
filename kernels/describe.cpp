#include "kernels/describe.h"

#include "kernels/roofline.h"

namespace plumb {

Program describe(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits) {
  peak_flops_per_second(limits, options.precision);  // refuses what the device lacks
  return limits.kind == DeviceKind::cuda ? cuda::describe(graph, options, limits)
                                         : cpu::describe(graph, options, limits);
}

}  // namespace plumb
