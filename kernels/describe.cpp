#include "kernels/describe.h"

#include "kernels/roofline.h"

namespace plumb {

std::string_view name_of(FusedPattern pattern) {
  switch (pattern) {
    case FusedPattern::statistics:
      return "statistics";
    case FusedPattern::normalized_input:
      return "normalized_input";
    case FusedPattern::residual_input:
      return "residual_input";
    case FusedPattern::norm_backward_data:
      return "norm_backward_data";
  }
  return "";
}

Program describe(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits) {
  peak_flops_per_second(limits, options.precision);  // throws if the device lacks the precision
  return limits.kind == DeviceKind::cuda ? cuda::describe(graph, options, limits)
                                         : cpu::describe(graph, options, limits);
}

std::string fusion_text(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits) {
  return limits.kind == DeviceKind::cuda ? cuda::fusion_text(graph, options, limits) : "";
}

}  // namespace plumb
