#include <type_traits>

#include "kernels/cuda/own/block_end.h"
#include "kernels/cuda/own/block_end_kernel.h"
#include "kernels/cuda/own/elements.h"

namespace plumb::cuda {

void launch_block_end(DType dtype, const BlockEndShape& shape, const EndAddresses& tensors,
                      const NormBackward& norm, const NormBackward& shortcut, cudaStream_t stream) {
  with_half_type_of(dtype, [&]<typename T>(T) {
    const auto launch = [&]<int kSums>(std::integral_constant<int, kSums>) {
      launch_end<T, End::gradient, EndTile<kBlockEndChannels>, kSums>(
          shape, tensors_of<T>(tensors, norm, shortcut), norm, shortcut, stream);
    };
    if (tensors.shortcut_in)
      launch(std::integral_constant<int, 3>{});
    else if (tensors.norm_in)
      launch(std::integral_constant<int, 2>{});
    else if (norm.d_bias)
      launch(std::integral_constant<int, 1>{});
    else
      launch(std::integral_constant<int, 0>{});
  });
}

void launch_block_end_forward(DType dtype, const BlockEndShape& shape, const EndAddresses& tensors,
                              cudaStream_t stream) {
  with_half_type_of(dtype, [&]<typename T>(T) {
    const auto launch = tensors.added ? launch_end<T, End::forward, EndTile<kBlockEndChannels>, 0>
                                      : launch_end<T, End::joined, EndTile<kBlockEndChannels>, 0>;
    launch(shape, tensors_of<T>(tensors), {}, {}, stream);
  });
}

void launch_block_end_through(DType dtype, const BlockEndShape& shape, const EndAddresses& tensors,
                              const NormBackward& norm, cudaStream_t stream) {
  with_half_type_of(dtype, [&]<typename T>(T) {
    const auto launch = shape.channels % kBlockEndChannels == 0
                            ? launch_through<T, EndTile<kBlockEndChannels>>
                            : launch_through<T, EndTile<kBlockEndChannels / 2>>;
    launch(shape, tensors, norm, stream);
  });
}

}  // namespace plumb::cuda
