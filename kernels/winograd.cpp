#include "kernels/winograd.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace plumb {
namespace {

constexpr std::int64_t kTileSide = 4;
constexpr double kTileProducts = 36;  // (4 + 3 - 1)^2, in place of 16 x 9
constexpr std::int64_t kVector = 16;  // floats of 512 bits

// Time in units of a direct multiply-accumulate per pair of channels: transforming the weights, computing a
// tile, transforming it once per input and per output channel. Fitted to 180 passes (docs/performance.md).
constexpr double kWeightTransform = 2500, kTile = 50, kTileTransform = 1000;
constexpr double kMostRelativeTime = 0.9;
// Backward-weights sums once per thread: 38 MB each for 512 x 512 channels. Not measured on many threads.
constexpr double kMostSums = 256 << 20;

// oneDNN works in blocks where the transformed weights are at most 3.2 times the second-level cache.
constexpr double kCachePerCore = 2 << 20;
constexpr double kAlignment = 4 * (2 << 20);  // oneDNN aligns each of up to four parts to a huge page

std::int64_t tiles_of(const Shape& out) {
  const auto along = [](std::int64_t side) { return (side + kTileSide - 1) / kTileSide; };
  return out.n * along(out.h) * along(out.w);
}

// As init_scratchpad() in oneDNN's jit_avx512_core_f32_wino_conv_4x3.hpp (2.6), from above. `weights` and
// `tensors`: bytes of these when transformed.
double workspace_of(double weights, double tensors, ConvPass pass, int threads) {
  const bool is_small = weights <= 3.2 * kCachePerCore;
  if (pass != ConvPass::backward_weights)
    return weights + (is_small ? std::min(tensors, 2 * threads * kCachePerCore) : tensors);
  // Per thread a copy of the sums; of tensors that are large beside the weights only blocks.
  const bool in_blocks = is_small && tensors >= 2 * threads * kCachePerCore;
  return in_blocks ? 1.25 * threads * weights + 2 * kCachePerCore : (threads + 1) * weights + tensors;
}

}  // namespace

bool can_be_winograd(const Graph& graph, const Conv& op) {
  return op.kernel == 3 && op.stride == 1 && op.padding <= 1 && op.groups == 1 &&
         graph.values[op.in].shape.c % kVector == 0 && graph.values[op.out].shape.c % kVector == 0;
}

std::optional<WinogradPass> winograd_pass(const Graph& graph, const Conv& op, ConvPass pass, int threads) {
  if (!can_be_winograd(graph, op)) return std::nullopt;
  const Shape& out = graph.values[op.out].shape;
  const auto tiles = static_cast<double>(tiles_of(out));
  const auto in_channels = static_cast<double>(graph.values[op.in].shape.c);
  const auto out_channels = static_cast<double>(out.c);
  const auto direct = static_cast<double>(9 * out.n * out.h * out.w);
  const double weights = kTileProducts * sizeof(float) * in_channels * out_channels;
  const double tensors = kTileProducts * sizeof(float) * tiles * (in_channels + out_channels);
  if (pass == ConvPass::backward_weights && (threads + 1) * weights > kMostSums) return std::nullopt;
  return WinogradPass{
      .macs = kTileProducts * tiles * in_channels * out_channels,
      .workspace_bytes = static_cast<std::size_t>(workspace_of(weights, tensors, pass, threads) + kAlignment),
      .relative_time =
          (kWeightTransform + tiles * (kTile + kTileTransform * (1 / in_channels + 1 / out_channels))) /
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

std::string winograd_text(const Program& program) {
  std::vector<std::pair<std::string, std::string>> layers;  // name, passes
  std::size_t fast = 0, direct = 0;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.engine == kDirect) ++direct;
    if (instruction.engine != kWinograd) continue;
    ++fast;
    const std::size_t dot = instruction.name.rfind('.');
    const std::string layer = instruction.name.substr(0, dot);
    auto found = std::ranges::find(layers, layer, &std::pair<std::string, std::string>::first);
    if (found == layers.end()) found = layers.insert(layers.end(), {layer, ""});
    append_part(found->second, instruction.name.substr(dot + 1));
  }
  if (fast + direct == 0) return "";
  std::string text = fmt::format(
      "{} of {} passes over 3x3 convolutions with stride 1 by Winograd's F(4x4, 3x3)\n", fast, fast + direct);
  for (const auto& [layer, passes] : layers) text += fmt::format("  {}: {}\n", layer, passes);
  return text;
}

}  // namespace plumb
