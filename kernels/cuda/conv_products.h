// 1x1 convolutions of stride 1 as matrix products: cuBLASLt's algorithms beside another library's engines.
#pragma once

#include <memory>

#include "kernels/cuda/conv.h"
#include "kernels/cuda/dense.h"

namespace plumb::cuda {

// `convolutions`, plus the algorithms of `products`, listed after its own engines, for plain 1x1 convolutions
// of stride 1 without padding. `products` must outlive the result and its plans.
std::unique_ptr<ConvEngine> with_matrix_products(std::unique_ptr<ConvEngine> convolutions,
                                                 GemmEngine& products);

}  // namespace plumb::cuda
