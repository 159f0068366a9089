// Converts tensors of any dtype to floats and back, on the CPU.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/program/program.h"

namespace plumb::cuda {

std::vector<float> read_floats(const std::byte* from, std::size_t elements, DType dtype);
// Rounds to nearest even.
void write_floats(std::byte* to, const std::vector<float>& values, DType dtype);
// The same as a product reads them: under TF32 tensor cores chop the last 13 of 24 bits off.
std::vector<float> read_factors(const std::byte* from, std::size_t elements, DType dtype, bool allow_tf32);
// The values rounded to a storage type.
void round_floats(std::vector<float>& values, DType dtype);

}  // namespace plumb::cuda
