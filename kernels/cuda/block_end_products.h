// Block ends without x (kernels/program/instructions/block_end.h) by a library's products, where our own
// kernels don't run: in f32, and in f16 below compute capability 8.0. Forward is a product with bias, ReLU
// and mask in its epilogue, which adds the shortcut; a stored shortcut's norm is applied first, a shortcut's
// product added first. Backward is two products into one tensor. Biases have the output's dtype: in f16
// shifts are rounded.
#pragma once

#include "kernels/cuda/binding.h"
#include "kernels/cuda/product_norm.h"

namespace plumb::cuda {

// The convolution as a product.
ProductNormShape product_shape(const Context& context, const Instruction& instruction);

// For instructions with by_products. Throw Error(internal) if the library has no algorithm for a product.
Binder prepare_products(Context& context, Instruction& instruction, const BlockEndForward& end);
Binder prepare_products(Context& context, Instruction& instruction, const BlockEndBackwardData& end);

}  // namespace plumb::cuda
