// What feeds tensor cores, and their products (PTX ISA, "cp.async", "ldmatrix", "stmatrix",
// "mma.m16n8k16").
#pragma once

#include <cstddef>
#include <source_location>

namespace plumb::gpu::emulated {

// 16 bytes, or zeros; they arrive when the thread finishes its copies, or all groups of them but the last
// ones.
void start_copy(void* into, const void* from, bool there);
void end_copy_group();
void finish_copies();
void finish_copy_groups(int open);

void load_matrices(unsigned (&into)[4], const void* row, bool transposed, std::source_location where);
// The operands are f16 or bf16. Sums 16 products in f32, then adds the result.
void multiply_add(float (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, bool bf16,
                  std::source_location where);

}  // namespace plumb::gpu::emulated
