// Whether two engines for one instruction compute the same: a kernel that is wrong is never chosen.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/binding.h"
#include "kernels/cuda/vendors/conv.h"

namespace plumb::cuda {

// How the failure of a wrong kernel's trial begins.
inline constexpr std::string_view kOtherValues = "computes other values than ";
inline constexpr std::size_t kComparedBytes = 1 << 20;  // of each operand's head, and of its tail

struct WrittenOperand {
  std::string name;
  DType dtype = DType::f32;
  std::int64_t row = 1;          // elements that belong together: the last dimension's
  std::vector<std::int64_t> at;  // elements, with their values
  std::vector<float> values;
};
struct WrittenResults {
  std::string engine;
  std::vector<WrittenOperand> operands;
};

// Of the operands that the instruction writes only. Waits for the stream.
WrittenResults read_written(const Program& program, const Instruction& instruction, const Arena& arena,
                            cudaStream_t stream);

// What an instruction multiplies: `count` products of halves or floats are summed for an element.
struct SummedProducts {
  double count = 0;
  DType dtype = DType::f32;
};
// Of a convolution, or of a block's end.
SummedProducts products_of(const Graph& graph, const Program& program, const Instruction& instruction);

// "d_in[5] is 1.5 instead of 2.5, more than 0.01 apart" for the first difference; empty without one. Both
// from operands that are random numbers of either sign, from 0.5 to 1. A sum of n of their products stays
// within 4 sqrt(n), and a tensor core chops off up to 2^-23 of it at each of n additions; then either engine
// rounds to the operand's dtype. Results in f32 are sums over pixels, of values rounded or not: within 8
// roundings of the largest in their row. One of a thousand bytes of a mask may differ, where a sum is almost
// 0.
std::string difference(const WrittenResults& made, const WrittenResults& expected,
                       const SummedProducts& products);

}  // namespace plumb::cuda
