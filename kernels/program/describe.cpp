#include "kernels/program/describe.h"

#include <array>

#include "kernels/program/roofline.h"

namespace plumb {

std::string_view name_of(FusedPattern pattern) {
  static constexpr std::array<std::string_view, 7> kNames{
      "statistics",     "normalized_input", "norm_backward_data", "block_end_gradient",
      "block_end_sums", "product_norm",     "product_shortcut"};
  return kNames.at(static_cast<std::size_t>(pattern));
}

Program describe(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits) {
  peak_flops_per_second(limits, options.precision);  // throws if the device lacks the precision
  return limits.kind == DeviceKind::cuda ? cuda::describe(graph, options, limits)
                                         : cpu::describe(graph, options, limits);
}

}  // namespace plumb
