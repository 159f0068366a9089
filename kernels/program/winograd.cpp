#include "kernels/program/winograd.h"

#include <algorithm>
#include <utility>

namespace plumb {
namespace {

// Time in units of a direct multiply-accumulate per pair of channels: transforming the weights, computing a
// tile, transforming it once per input and per output channel. Fitted to passes of either stride, with
// AVX-512 and with AVX2 (docs/explanation/cpu-winograd.md).
struct PassTime {
  double weights = 0, tile = 0, transforms = 0;
};
PassTime pass_time(WinogradKind kind, ConvPass pass, int lanes, Precision precision) {
  const bool has_avx512 = lanes == 16;
  if (kind == WinogradKind::plain) {
    const double weights = precision == Precision::bf16 ? 1000 : has_avx512 ? 600 : 870;
    return {.weights = weights, .tile = 40, .transforms = 700};
  }
  const double tile = pass != ConvPass::backward_weights ? 90 : has_avx512 ? 95 : 140;
  return {.weights = has_avx512 ? 1000.0 : 1450.0, .tile = tile, .transforms = 1000};
}
constexpr double kMostRelativeTime = 0.9;

constexpr std::int64_t kMostPanel = 32;  // of every blocking

}  // namespace

bool can_be_winograd(const Graph& graph, const Conv& op) {
  const bool has_tiles = op.stride == 1 ? op.padding <= 1 : op.stride == 2 && op.padding == 1;
  return op.kernel == 3 && has_tiles && op.groups == 1 && graph.values[op.in].shape.c % kMostPanel == 0 &&
         graph.values[op.out].shape.c % kMostPanel == 0;
}

std::optional<WinogradPass> winograd_pass(const Graph& graph, const Conv& op, ConvPass pass,
                                          const DeviceLimits& limits, Precision precision) {
  const int lanes = limits.winograd_lanes, threads = limits.threads;
  if (lanes == 0 || !can_be_winograd(graph, op)) return std::nullopt;
  const ConvShape shape = conv_shape(graph, op);
  const WinogradPlan plan = plan_winograd(shape, pass, lanes, threads);
  const auto products = static_cast<double>(plan.products());
  const double tiles = products / static_cast<double>(plan.points());  // a short one is so much of one
  const PassTime time = pass_time(plan.kind, pass, lanes, precision);
  const auto in_channels = static_cast<double>(shape.in_channels);
  const auto out_channels = static_cast<double>(shape.out_channels);
  const double direct = static_cast<double>(9 * shape.images * shape.out_height * shape.out_width) *
                        limits.flops_per_second.at(Precision::fp32) / limits.flops_per_second.at(precision);
  return WinogradPass{
      .macs = products * in_channels * out_channels,
      .workspace_bytes = static_cast<std::size_t>(plan.floats) * sizeof(float),
      .relative_time =
          (time.weights + tiles * (time.tile + time.transforms * (1 / in_channels + 1 / out_channels))) /
          direct};
}

bool is_faster(const WinogradPass& pass) {
  return pass.relative_time <= kMostRelativeTime;
}

std::vector<std::string> winograd_instructions(const Program& program) {
  std::vector<std::string> names;
  for (const Instruction& instruction : program.instructions)
    if (instruction.engine == kWinograd) names.push_back(instruction.name);
  return names;
}

}  // namespace plumb
