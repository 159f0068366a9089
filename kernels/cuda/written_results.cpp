#include "kernels/cuda/written_results.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "kernels/cuda/own/element_types.h"
#include "kernels/cuda/runtime/runtime.h"

namespace plumb::cuda {
namespace {

// Elements [first, first + count) of the buffer.
void read_part(const Buffer& buffer, const std::byte* data, std::size_t first, std::size_t count,
               cudaStream_t stream, WrittenOperand& into) {
  const std::size_t size = bytes_of(buffer.dtype);
  std::vector<std::byte> bytes(count * size);
  check(cudaMemcpyAsync(bytes.data(), data + first * size, bytes.size(), cudaMemcpyDeviceToHost, stream));
  check(cudaStreamSynchronize(stream));
  for (std::size_t i = 0; i < count; ++i) into.at.push_back(static_cast<std::int64_t>(first + i));
  if (buffer.dtype == DType::u8)
    for (const std::byte byte : bytes) into.values.push_back(static_cast<float>(byte));
  else
    with_type_of(buffer.dtype, [&]<typename T>(T) {
      const auto* const held = reinterpret_cast<const T*>(bytes.data());
      for (std::size_t i = 0; i < count; ++i) into.values.push_back(to_float(held[i]));
    });
}

double products_of(const ConvProblem& p) {
  const std::int64_t taps = std::int64_t{p.kernel} * p.kernel;
  if (p.pass == ConvPass::backward_weights) return static_cast<double>(p.n * p.out_h * p.out_w);
  return static_cast<double>(taps * (p.pass == ConvPass::forward ? p.c : p.out_c) / p.groups);
}

bool more_than_a_thousandth_differ(const WrittenOperand& made, const WrittenOperand& expected) {
  std::size_t others = 0;
  for (std::size_t i = 0; i < made.values.size(); ++i) others += made.values[i] != expected.values[i];
  return 1000 * others > made.values.size();
}

double unit_roundoff(DType dtype) {
  return dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-24;
}

}  // namespace

WrittenResults read_written(const Program& program, const Instruction& instruction, const Arena& arena,
                            cudaStream_t stream) {
  WrittenResults results;
  for (const BufferUse& use : instruction.uses()) {
    const Buffer& buffer = program.buffers[use.buffer];
    if (use.access != Access::write) continue;
    WrittenOperand operand{.name = std::string(use.operand), .dtype = buffer.dtype};
    if (!buffer.dims.empty()) operand.row = buffer.dims.back();
    const std::size_t elements = buffer.bytes / bytes_of(buffer.dtype),
                      part = std::min(elements, kComparedBytes / bytes_of(buffer.dtype));
    read_part(buffer, arena.data(use.buffer), 0, part, stream, operand);
    const std::size_t tail = std::max(part, elements - part);
    read_part(buffer, arena.data(use.buffer), tail, elements - tail, stream, operand);
    results.operands.push_back(std::move(operand));
  }
  return results;
}

SummedProducts products_of(const Graph& graph, const Program& program, const Instruction& instruction) {
  if (const std::optional<ConvProblem> problem = conv_problem(graph, program, instruction))
    return {products_of(*problem), problem->dtype};
  const auto* const forward = instruction.as<BlockEndForward>();
  const BufferId factors =
      forward ? forward->scaled_transposed.buffer : instruction.as<BlockEndBackwardData>()->scaled.buffer;
  const Buffer& held = program.buffers[factors];
  return {static_cast<double>(held.dims.at(0) + (forward ? 0 : held.dims.at(1))), held.dtype};
}

std::string difference(const WrittenResults& made, const WrittenResults& expected,
                       const SummedProducts& products) {
  const double chopped = 4 * std::pow(products.count, 1.5) * 0x1p-23;
  for (std::size_t o = 0; o < made.operands.size(); ++o) {
    const WrittenOperand &own = made.operands[o], &other = expected.operands[o];
    if (own.dtype == DType::u8) {
      if (more_than_a_thousandth_differ(own, other))
        return fmt::format("more than a thousandth of {}'s bytes differ", own.name);
      continue;
    }
    const auto row_of = [&](std::size_t i) { return static_cast<std::size_t>(own.at[i] / own.row); };
    std::vector<double> largest;  // by row of an f32 operand
    if (own.dtype == DType::f32 && products.dtype != DType::f32)
      for (std::size_t i = 0; i < other.values.size(); ++i) {
        largest.resize(std::max(largest.size(), row_of(i) + 1));
        if (std::isfinite(other.values[i]))
          largest[row_of(i)] = std::max(largest[row_of(i)], std::abs(double{other.values[i]}));
      }
    for (std::size_t i = 0; i < own.values.size(); ++i) {
      const double a = own.values[i], b = other.values[i];
      const double bound = largest.empty()
                               ? chopped + 2 * unit_roundoff(own.dtype) * std::max(std::abs(a), std::abs(b))
                               : 8 * unit_roundoff(products.dtype) * largest[row_of(i)];
      if (std::isfinite(b) && !(std::abs(a - b) <= bound))
        return fmt::format("{}[{}] is {} instead of {}, more than {:.2g} apart", own.name, own.at[i], a, b,
                           bound);
    }
  }
  return "";
}

}  // namespace plumb::cuda
