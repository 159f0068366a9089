#include "tests/cuda_host/emulated/matrix_functions.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "tests/cuda_host/emulated/block.h"

namespace plumb::gpu::emulated {
namespace {

constexpr std::uint32_t kAllLanes = ~std::uint32_t{0};

// Lanes bring the addresses of these; whoever comes last works for all.
struct Load {
  const std::uint16_t* row = nullptr;
  unsigned (*into)[4] = nullptr;
  bool transposed = false;
};
struct Product {
  float (*sums)[4] = nullptr;
  const unsigned (*a)[4] = nullptr;
  std::array<unsigned, 2> b{};
  bool bf16 = false;
};

struct Copy {
  void* into = nullptr;  // null: the end of a group
  const void* from = nullptr;
  bool there = false;
};
// Those that the running thread has started, in order.
std::vector<Copy>& own_copies() {
  static std::vector<std::vector<Copy>> of_threads;  // of the running block
  const std::size_t thread = thread_of_block();
  if (of_threads.size() <= thread) of_threads.resize(thread + 1);
  return of_threads[thread];
}
void finish(std::vector<Copy>& copies, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const Copy& copy = copies[i];
    if (copy.into && copy.there) std::memcpy(copy.into, copy.from, 16);
    if (copy.into && !copy.there) std::memset(copy.into, 0, 16);
  }
  copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(count));
}

void require_16_bytes(const void* address) {
  if (reinterpret_cast<std::uintptr_t>(address) % 16 != 0)
    throw std::logic_error("an address is not a multiple of 16 bytes");
}

template <typename Work>
Work& brought_by(const Warp& warp, std::size_t lane) {
  return *reinterpret_cast<Work*>(warp.brought.at(lane));
}

void load_for_all(Warp& warp, std::uint32_t) {
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    const Load& load = brought_by<Load>(warp, lane);
    for (std::size_t matrix = 0; matrix < 4; ++matrix) {
      const auto element = [&](std::size_t row, std::size_t column) -> unsigned {
        return brought_by<Load>(warp, matrix * 8 + row).row[column];
      };
      const std::size_t line = lane / 4, first = lane % 4 * 2;
      (*load.into)[matrix] = load.transposed ? element(first, line) | element(first + 1, line) << 16
                                             : element(line, first) | element(line, first + 1) << 16;
    }
  }
}

// One of two packed f16 or bf16.
float half_of(unsigned pair, std::size_t which, bool bf16) {
  const auto bits = static_cast<std::uint16_t>(which == 0 ? pair : pair >> 16);
  if (bf16) return std::bit_cast<float>(std::uint32_t{bits} << 16);
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}

void multiply_for_all(Warp& warp, std::uint32_t) {
  std::array<std::array<float, 16>, 16> a{};  // row by row
  std::array<std::array<float, 8>, 16> b{}, sums{};
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    const Product& product = brought_by<Product>(warp, lane);
    const std::size_t line = lane / 4, first = lane % 4 * 2;
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::size_t part = 0; part < 4; ++part)
        a[line + part % 2 * 8][first + part / 2 * 8 + i] = half_of((*product.a)[part], i, product.bf16);
      for (std::size_t part = 0; part < 2; ++part)
        b[first + part * 8 + i][line] = half_of(product.b[part], i, product.bf16);
    }
  }
  for (std::size_t row = 0; row < 16; ++row)
    for (std::size_t k = 0; k < 16; ++k)
      for (std::size_t column = 0; column < 8; ++column) sums[row][column] += a[row][k] * b[k][column];
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane)
    for (std::size_t part = 0; part < 4; ++part)
      (*brought_by<Product>(warp, lane).sums)[part] += sums[lane / 4 + part / 2 * 8][lane % 4 * 2 + part % 2];
}

}  // namespace

void start_copy(void* into, const void* from, bool there) {
  require_16_bytes(into);
  if (there) require_16_bytes(from);
  own_copies().push_back({into, from, there});
}

void end_copy_group() {
  own_copies().push_back({});
}

void finish_copies() {
  finish(own_copies(), own_copies().size());
}

void finish_copy_groups(int open) {
  std::vector<Copy>& copies = own_copies();
  std::size_t count = copies.size();
  for (; count > 0; --count)
    if (!copies[count - 1].into && open-- == 0) break;
  finish(copies, count);
}

void load_matrices(unsigned (&into)[4], const void* row, bool transposed, std::source_location where) {
  require_16_bytes(row);
  Load load{static_cast<const std::uint16_t*>(row), &into, transposed};
  block().exchange(kAllLanes, reinterpret_cast<std::uintptr_t>(&load), 0, load_for_all, where);
}

void multiply_add(float (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, bool bf16,
                  std::source_location where) {
  Product product{&sums, &a, {b0, b1}, bf16};
  block().exchange(kAllLanes, reinterpret_cast<std::uintptr_t>(&product), 0, multiply_for_all, where);
}

}  // namespace plumb::gpu::emulated
