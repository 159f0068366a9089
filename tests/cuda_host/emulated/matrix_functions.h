// What feeds tensor cores, and their products (PTX ISA, "cp.async", "ldmatrix", "mma.m16n8k16").
#pragma once

#include <source_location>

namespace plumb::gpu::emulated {

// 16 bytes, or zeros; they arrive when the thread finishes its copies.
void start_copy(void* into, const void* from, bool there);
void finish_copies();

void load_matrices(unsigned (&into)[4], const void* row, bool transposed, std::source_location where);
// Of f16 or bf16; each sum over 16 products is rounded once, then added.
void multiply_add(float (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, bool bf16,
                  std::source_location where);

}  // namespace plumb::gpu::emulated
