#include "kernels/cuda/workspaces.h"

#include <algorithm>

#include "kernels/cuda/depthwise_shape.h"
#include "kernels/cuda/margin_partition.h"

namespace plumb::cuda {
namespace {

constexpr std::size_t kConvWorkspaceLeast = std::size_t{32} << 20;
constexpr std::size_t kConvWorkspaceMost = std::size_t{256} << 20;

}  // namespace

std::size_t conv_workspace_bytes(const Graph& graph, const Conv& op, bool of_weights, const Buffer& in,
                                 const Buffer& out, const Buffer& weight) {
  if (!is_depthwise(graph, op))
    return std::clamp(in.bytes + out.bytes + 4 * weight.bytes, kConvWorkspaceLeast, kConvWorkspaceMost);
  if (!of_weights) return 0;
  return depthwise_workspace_bytes(depthwise_shape(graph, op), in.dtype);
}

void set_margin_workspaces(Program& program, std::size_t first_instruction, std::int64_t images_of_all_ranks,
                           const Buffer& rows) {
  const std::size_t copy = margin_copy_bytes(images_of_all_ranks, rows.dims[1], rows.dtype);
  for (std::size_t i = first_instruction; i < program.instructions.size(); ++i) {
    Instruction& instruction = program.instructions[i];
    if (instruction.as<MarginSampleClasses>())
      instruction.workspace_bytes = sample_workspace_bytes(images_of_all_ranks, rows.dims[0]);
    else if (instruction.as<MarginStatistics>())
      instruction.workspace_bytes = statistics_workspace_bytes(images_of_all_ranks, rows.dims[0], rows.dtype);
    else if (instruction.as<MarginProducts>() || instruction.as<MarginWeightGradient>())
      instruction.workspace_bytes = copy + kMarginGemmWorkspace;
    else if (instruction.as<MarginFeatureProducts>())
      instruction.workspace_bytes = kMarginGemmWorkspace;
  }
}

}  // namespace plumb::cuda
