// Products of warpgroups on tensor cores, and what orders them (PTX ISA, "Asynchronous Warpgroup Level Matrix
// Instructions", for sm_90a). A kernel fails here where a GPU would compute something undefined: a sum that
// is read too early is NaN; shared memory that changes while a product reads it, that a copy has filled
// without share_with_products(), or that lies outside the block's, throws. Ordinary stores to shared memory
// aren't seen.
#pragma once

#include <cstdint>
#include <source_location>
#include <span>

namespace plumb::gpu::emulated {

// The 64-bit descriptor of a matrix without swizzle. Throws std::logic_error for an address outside the
// block's shared memory, or a distance that it can't hold.
std::uint64_t describe_matrix(const void* first, int leading_bytes, int stride_bytes);

void begin_products();
// sums: the lane's part of [64, N], two per column and row group: a [64, 16] b [16, N], b's columns 16
// adjacent elements; a's rows, or with `transposed` a's columns. Adds to the sums, or replaces them.
void multiply_warpgroup(std::span<float> sums, std::uint64_t a, std::uint64_t b, bool transposed, bool adds,
                        bool bf16, std::source_location where);
void end_product_group();
void wait_for_product_groups(int open);

void share_with_products();
// A copy of the running thread has arrived.
void note_copied(const void* chunk);

}  // namespace plumb::gpu::emulated
