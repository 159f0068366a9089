// Numbers for the operands of instructions that tuning times.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cuda/binding.h"

namespace plumb::cuda {

// Fills the operands with random numbers of either sign in [0.5, 1), and those whose role is a state with
// zeros. Zeros elsewhere would draw less power than a step's numbers, and so be multiplied at higher clocks.
// In a convolution f32 operands are almost 0: where a ReLU follows, its engines then agree on what passes.
void fill_operands(const Graph& graph, const Program& program, const Instruction& instruction,
                   const Arena& arena, cudaStream_t stream);

}  // namespace plumb::cuda
