#include "kernels/cuda/tuning_numbers.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/cuda/check.h"

namespace plumb::cuda {
namespace {

constexpr std::size_t kTileBytes = 1 << 20;

// The bits of 0.5, and which bits are random.
std::vector<std::uint16_t> random_words(std::uint16_t half, std::uint16_t random_bits) {
  std::mt19937 random;
  std::vector<std::uint16_t> words(kTileBytes / sizeof(std::uint16_t));
  for (std::uint16_t& word : words) word = static_cast<std::uint16_t>(half | (random() & random_bits));
  return words;
}

void fill(std::byte* memory, std::size_t bytes, const std::vector<std::uint16_t>& words,
          cudaStream_t stream) {
  std::size_t filled = std::min(bytes, kTileBytes);
  check(cudaMemcpyAsync(memory, words.data(), filled, cudaMemcpyHostToDevice, stream));
  while (filled < bytes) {
    const std::size_t more = std::min(filled, bytes - filled);
    check(cudaMemcpyAsync(memory + filled, memory, more, cudaMemcpyDeviceToDevice, stream));
    filled += more;
  }
}

}  // namespace

void fill_operands(const Graph& graph, const Program& program, const Instruction& instruction,
                   const Arena& arena, cudaStream_t stream) {
  // Read as f32, two of f16 are almost 0, and two of bf16 again in [0.5, 1).
  static const std::vector<std::uint16_t> kF16 = random_words(0x3800, 0x83ff),
                                          kBf16 = random_words(0x3f00, 0x807f);
  const bool is_conv = conv_problem(graph, program, instruction).has_value();
  for (const BufferUse& use : instruction.uses()) {
    const Buffer& buffer = program.buffers[use.buffer];
    std::byte* const data = arena.data(use.buffer);
    if (buffer.role == Role::state)  // counters of norms count from zero
      check(cudaMemsetAsync(data, 0, buffer.bytes, stream));
    else
      fill(data, buffer.bytes,
           buffer.dtype == DType::bf16 || (buffer.dtype == DType::f32 && !is_conv) ? kBf16 : kF16, stream);
  }
}

}  // namespace plumb::cuda
