// Sums of half-precision numbers on the CPU.
#pragma once

#include <cstddef>

namespace plumb {

// into[i] += from[i], added in fp32 and rounded to nearest even. fp32 has enough mantissa bits for the sum of
// two f16 numbers, so rounding twice is harmless. 6 bytes of memory traffic per element.
void add_f16(const _Float16* from, _Float16* into, std::size_t count);

}  // namespace plumb
