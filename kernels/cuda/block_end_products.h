// Block ends without x (kernels/instructions/block_end.h) by cuBLASLt's products instead of our own kernels:
// on Hopper these multiply by wgmma. Forward is one product: beta = 1 with the shortcut as C, and an epilogue
// with bias, ReLU and mask. It has no engine where the shortcut is normalised. The bias has the output's
// dtype, so the shift is rounded once more. Backward is two products into one tensor, and a pass that masks
// the tensor and sums it: 4 passes over it that our own kernel doesn't have.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/binding.h"
#include "kernels/cuda/product_norm.h"

namespace plumb::cuda {

// The convolution as a product.
ProductNormShape product_shape(const Context& context, const Instruction& instruction);
NormBackward norm_in_front_of(const BlockEndBackwardData& end, const Arena& arena);  // without one: null

// Binds the instruction to the products that Instruction::engine names, or to the library's first if it has
// no such ones. Returns an empty Binder if our own kernel is wanted, by name or by an empty one, or if the
// library lists no algorithm. Sets engine and workspace.
Binder prepare_products(Context& context, Instruction& instruction, const BlockEndForward& end);
Binder prepare_products(Context& context, Instruction& instruction, const BlockEndBackwardData& end);

// The engines that an instruction may have besides convolutions' (Instruction::engine), our own kernel first.
std::vector<std::string> engines_of(Context& context, const Instruction& instruction);

}  // namespace plumb::cuda
