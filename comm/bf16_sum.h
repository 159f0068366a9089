// Sums of bfloat16 numbers on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plumb {

// into[i] += from[i], added in fp32 and rounded to nearest even. fp32 has more than twice as many mantissa
// bits, so rounding twice is harmless. Values are raw bits, the upper half of an fp32; NaNs become quiet. 6
// bytes of memory traffic per element.
void add_bf16(const std::uint16_t* from, std::uint16_t* into, std::size_t count);

}  // namespace plumb
