#include <type_traits>

#include "kernels/cuda/own/block_end.h"
#include "kernels/cuda/own/block_end_kernel.h"
#include "kernels/cuda/own/elements.h"

namespace plumb::cuda {

void launch_block_end(DType dtype, const BlockEndShape& shape, const BlockEndOperands& operands,
                      cudaStream_t stream) {
  with_half_type_of(dtype, [&]<typename T>(T) {
    const EndTensors<T> tensors{.left = as<T>(operands.d_out),
                                .weight = as<T>(operands.weight),
                                .added = as<T>(operands.added),
                                .mask = as<unsigned char>(operands.mask),
                                .out = as<T>(operands.d_in),
                                .norm_in = as<T>(operands.norm_in),
                                .shortcut_in = as<T>(operands.shortcut_in),
                                .means = {operands.norm.mean, operands.shortcut.mean},
                                .partials = operands.partials};
    const auto launch = [&]<int kSums>(std::integral_constant<int, kSums>) {
      launch_end<T, End::gradient, EndTile<kBlockEndChannels>, kSums>(shape, tensors, operands.norm,
                                                                      operands.shortcut, stream);
    };
    if (operands.shortcut_in)
      launch(std::integral_constant<int, 3>{});
    else if (operands.norm_in)
      launch(std::integral_constant<int, 2>{});
    else if (operands.norm.d_bias)
      launch(std::integral_constant<int, 1>{});
    else
      launch(std::integral_constant<int, 0>{});
  });
}

void launch_block_end_forward(DType dtype, const BlockEndShape& shape, const BlockEndOutput& operands,
                              cudaStream_t stream) {
  with_half_type_of(dtype, [&]<typename T>(T) {
    const EndTensors<T> tensors = tensors_of<T>(operands);
    if (operands.residual)
      launch_end<T, End::forward, EndTile<kBlockEndChannels>, 0>(shape, tensors, {}, {}, stream);
    else
      launch_end<T, End::joined, EndTile<kBlockEndChannels>, 0>(shape, tensors, {}, {}, stream);
  });
}

void launch_block_end_through(DType dtype, const BlockEndShape& shape, const BlockEndInputGradient& operands,
                              cudaStream_t stream) {
  with_half_type_of(dtype, [&]<typename T>(T) {
    if (shape.channels % kBlockEndChannels == 0)
      launch_through<T, EndTile<kBlockEndChannels>>(shape, operands, stream);
    else
      launch_through<T, EndTile<kBlockEndChannels / 2>>(shape, operands, stream);
  });
}

}  // namespace plumb::cuda
