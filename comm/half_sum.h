// Sums of 16-bit floating-point numbers on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plumb {

// into[i] += from[i], added in fp32 and rounded to nearest even. fp32 has enough mantissa bits for the sum of
// two such numbers, so rounding twice is harmless. 6 bytes of memory traffic per element.
void add_f16(const _Float16* from, _Float16* into, std::size_t count);
// bfloat16 as raw bits, the upper half of an fp32; NaNs become quiet.
void add_bf16(const std::uint16_t* from, std::uint16_t* into, std::size_t count);

}  // namespace plumb
