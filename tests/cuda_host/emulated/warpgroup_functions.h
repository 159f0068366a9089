// Products of warpgroups on tensor cores, and what orders them (PTX ISA, "Asynchronous Warpgroup Level Matrix
// Instructions", for sm_90a). A kernel fails here where a GPU would compute something undefined: a sum that
// is read too early is NaN; registers or shared memory that change while a product reads them, shared memory
// that a copy has filled without share_with_products(), or that lies outside the block's, throws. Ordinary
// stores to shared memory aren't seen.
#pragma once

#include <cstdint>
#include <source_location>
#include <span>

namespace plumb::gpu::emulated {

// The 64-bit descriptor of a matrix without swizzle. Throws std::logic_error for an address outside the
// block's shared memory, or a distance that it can't hold.
std::uint64_t describe_matrix(const void* first, int leading_bytes, int stride_bytes);

struct WarpgroupOperand {
  std::uint64_t descriptor = 0;
  bool depth_is_adjacent = true;        // "K-major"; else "MN-major"
  std::span<const unsigned> registers;  // the lane's part, instead of a matrix in shared memory
};
struct WarpgroupProduct {
  std::span<float> sums;  // the lane's part of [64, N], two per column and row group
  WarpgroupOperand a, b;  // [64, 16], [16, N]
  bool adds = false;      // to the sums; else replaces them
  bool bf16 = false;
};

void begin_products();
void multiply_warpgroup(const WarpgroupProduct& product, std::source_location where);
void end_product_group();
void wait_for_product_groups(int open);

void share_with_products();
// A copy of the running thread has arrived.
void note_copied(const void* chunk);

}  // namespace plumb::gpu::emulated
