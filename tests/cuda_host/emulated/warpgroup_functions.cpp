#include "tests/cuda_host/emulated/warpgroup_functions.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/cuda_host/emulated/block.h"
#include "tests/cuda_host/emulated/matrix_functions.h"

namespace plumb::gpu::emulated {
namespace {

constexpr std::size_t kChunk = 16, kDepth = 16, kWarpRows = 16;
constexpr unsigned kGroupWarps = 4;
constexpr std::uint64_t kFieldMask = 0x3FFF;  // of 14 bits, in chunks

// Sums that products under way add to; the registers hold them once their last group has ended.
struct Pending {
  std::span<float> registers;
  std::vector<float> values;
  std::size_t last_group = 0;
};
// What a product has read, until it has ended: shared memory for its warp's first lane, registers for each.
struct Reading {
  std::function<std::vector<std::byte>()> read;
  std::vector<std::byte> bytes;
  std::size_t group = 0;
};
struct Thread {
  bool may_begin = false;
  std::size_t groups = 0;  // that have been closed
  std::vector<Pending> pending;
  std::vector<Reading> readings;
  std::vector<std::size_t> copied;  // chunks since share_with_products()
};
struct State {
  std::uint64_t block = 0;
  std::vector<Thread> threads;
  std::vector<unsigned> unshared;  // by chunk: copies that products may not see yet
};

// Of the running block.
State& state() {
  static State state;
  if (state.block != block().blocks_run()) {
    const auto& size = place.block_size;
    state = {.block = block().blocks_run(),
             .threads = std::vector<Thread>(std::size_t{size.x} * size.y * size.z),
             .unshared = std::vector<unsigned>(block().shared_bytes() / kChunk)};
  }
  return state;
}
Thread& own_thread() {
  return state().threads.at(thread_of_block());
}

std::size_t bytes_at(std::uint64_t descriptor, int field) {
  return (descriptor >> (16 * field) & kFieldMask) * kChunk;
}

// 8 elements: of row or column `line`, the `part`-th eight of them.
const std::byte* chunk_of(const WarpgroupOperand& operand, std::size_t line, std::size_t part) {
  const std::size_t leading = bytes_at(operand.descriptor, 1), stride = bytes_at(operand.descriptor, 2);
  std::size_t at = bytes_at(operand.descriptor, 0) + line % 8 * kChunk;
  at += operand.depth_is_adjacent ? line / 8 * stride + part * leading : line / 8 * leading + part * stride;
  if (at + kChunk > block().shared_bytes())
    throw std::logic_error("a product reads beyond the block's shared memory");
  if (state().unshared[at / kChunk] > 0)
    throw std::logic_error("a product reads what a copy has written, before share_with_products()");
  return block().shared() + at;
}

// The chunks of lines [first, first + lines) of the product's depth, in order.
void read_lines(const WarpgroupOperand& operand, std::size_t first, std::size_t lines,
                std::vector<std::byte>& into) {
  const auto take = [&](std::size_t line, std::size_t part) {
    const std::byte* const chunk = chunk_of(operand, line, part);
    into.insert(into.end(), chunk, chunk + kChunk);
  };
  if (operand.depth_is_adjacent) {
    for (std::size_t line = first; line < first + lines; ++line)
      for (std::size_t part = 0; part < 2; ++part) take(line, part);
  } else {
    for (std::size_t depth = 0; depth < kDepth; ++depth)
      for (std::size_t part = first / 8; part < (first + lines) / 8; ++part) take(depth, part);
  }
}
// From shared memory.
std::vector<std::byte> read_operands(const WarpgroupProduct& product, unsigned warp) {
  std::vector<std::byte> bytes;
  if (product.a.registers.empty()) read_lines(product.a, kWarpRows * (warp % kGroupWarps), kWarpRows, bytes);
  read_lines(product.b, 0, 2 * product.sums.size(), bytes);
  return bytes;
}

std::vector<std::byte> bytes_of(std::span<const unsigned> registers) {
  const auto bytes = std::as_bytes(registers);
  return {bytes.begin(), bytes.end()};
}
// [16, 16] from a warp's lanes (PTX ISA, "Register Fragments for wgmma").
std::vector<std::byte> gather(std::span<const std::span<const unsigned>> lanes) {
  std::vector<std::byte> bytes(2 * kWarpRows * kDepth);
  for (std::size_t lane = 0; lane < lanes.size(); ++lane)
    for (std::size_t part = 0; part < lanes[lane].size(); ++part) {
      const std::size_t row = lane / 4 + part % 2 * 8, k = lane % 4 * 2 + part / 2 * 8;
      std::memcpy(&bytes[2 * (row * kDepth + k)], &lanes[lane][part], sizeof(unsigned));
    }
  return bytes;
}

float element_of(const std::vector<std::byte>& bytes, std::size_t at, bool bf16) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, bytes.data() + 2 * at, sizeof bits);
  return half_of(bits, 0, bf16);
}

// [16, columns] of the warp's rows.
std::vector<float> multiply(const WarpgroupProduct& product, const std::vector<std::byte>& bytes) {
  const std::size_t columns = 2 * product.sums.size(), of_a = kWarpRows * kDepth;
  std::vector<float> b(kDepth * columns), result(kWarpRows * columns);
  for (std::size_t column = 0; column < columns; ++column)
    for (std::size_t k = 0; k < kDepth; ++k)
      b[k * columns + column] =
          element_of(bytes, of_a + (product.b.depth_is_adjacent ? column * kDepth + k : k * columns + column),
                     product.bf16);
  for (std::size_t row = 0; row < kWarpRows; ++row)
    for (std::size_t k = 0; k < kDepth; ++k) {
      const float a = element_of(bytes, product.a.depth_is_adjacent ? row * kDepth + k : k * kWarpRows + row,
                                 product.bf16);
      for (std::size_t column = 0; column < columns; ++column)
        result[row * columns + column] += a * b[k * columns + column];
    }
  return result;
}

// The registers are not to be read until they hold the sums: NaN meanwhile.
Pending& begin_sums(Thread& thread, const WarpgroupProduct& product) {
  auto pending = std::ranges::find(thread.pending, product.sums.data(),
                                   [](const Pending& one) { return one.registers.data(); });
  if (pending == thread.pending.end())
    pending = thread.pending.insert(pending, {product.sums, {product.sums.begin(), product.sums.end()}});
  if (!product.adds) std::ranges::fill(pending->values, 0.0F);
  pending->last_group = thread.groups;
  std::ranges::fill(product.sums, std::numeric_limits<float>::quiet_NaN());
  return *pending;
}

void multiply_for_all(Warp& warp, std::uint32_t lanes) {
  if (lanes != ~std::uint32_t{0}) throw std::logic_error("a product of warpgroups lacks lanes");
  const auto product_of = [&](std::size_t lane) -> const WarpgroupProduct& {
    return *reinterpret_cast<const WarpgroupProduct*>(warp.brought.at(lane));
  };
  const WarpgroupProduct& product = product_of(0);
  const unsigned number = thread_of_block() / kWarpLanes;
  const auto keep_reading = [&](std::size_t lane, std::function<std::vector<std::byte>()> read) {
    Thread& thread = state().threads.at(number * kWarpLanes + lane);
    std::vector<std::byte> bytes = read();
    return thread.readings.emplace_back(std::move(read), std::move(bytes), thread.groups).bytes;
  };
  std::vector<std::byte> bytes = keep_reading(0, [=] { return read_operands(product, number); });
  if (!product.a.registers.empty()) {
    std::array<std::span<const unsigned>, kWarpLanes> registers;
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      registers[lane] = product_of(lane).a.registers;
      keep_reading(lane, [own = registers[lane]] { return bytes_of(own); });
    }
    const std::vector<std::byte> left = gather(registers);
    bytes.insert(bytes.begin(), left.begin(), left.end());
  }
  const std::vector<float> result = multiply(product, bytes);
  const std::size_t columns = 2 * product.sums.size();
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    const WarpgroupProduct& own = product_of(lane);
    if (own.a.descriptor != product.a.descriptor || own.b.descriptor != product.b.descriptor)
      throw std::logic_error("lanes give other matrices to a product");
    Pending& pending = begin_sums(state().threads.at(number * kWarpLanes + lane), own);
    for (std::size_t i = 0; i < own.sums.size(); ++i)
      pending.values[i] += result[(lane / 4 + i / 2 % 2 * 8) * columns + i / 4 * 8 + lane % 4 * 2 + i % 2];
  }
}

}  // namespace

std::uint64_t describe_matrix(const void* first, int leading_bytes, int stride_bytes) {
  const auto offset = static_cast<const std::byte*>(first) - block().shared();
  if (offset < 0 || static_cast<std::size_t>(offset) >= block().shared_bytes())
    throw std::logic_error("a matrix doesn't begin in the block's shared memory");
  std::uint64_t descriptor = 0;
  int field = 0;
  for (const std::ptrdiff_t bytes : {offset, std::ptrdiff_t{leading_bytes}, std::ptrdiff_t{stride_bytes}}) {
    const auto chunks = static_cast<std::uint64_t>(bytes) / kChunk;
    if (bytes % static_cast<std::ptrdiff_t>(kChunk) != 0 || chunks > kFieldMask)
      throw std::logic_error("a matrix lies at " + std::to_string(bytes) +
                             " bytes, which is not a multiple of 16 or too much for its descriptor");
    descriptor |= chunks << (16 * field++);
  }
  return descriptor;
}

void begin_products() {
  own_thread().may_begin = true;
}

void multiply_warpgroup(const WarpgroupProduct& product, std::source_location where) {
  if (!own_thread().may_begin) throw std::logic_error("a product comes before begin_products()");
  block().exchange(~std::uint32_t{0}, reinterpret_cast<std::uintptr_t>(&product), 0, multiply_for_all, where);
}

void end_product_group() {
  ++own_thread().groups;
}

void wait_for_product_groups(int open) {
  Thread& thread = own_thread();
  thread.may_begin = false;
  const auto has_ended = [&](std::size_t group) {
    return group + static_cast<std::size_t>(open) < thread.groups;
  };
  std::erase_if(thread.readings, [&](const Reading& reading) {
    if (!has_ended(reading.group)) return false;
    if (reading.read() != reading.bytes)
      throw std::logic_error("registers or shared memory have changed while a product read them");
    return true;
  });
  std::erase_if(thread.pending, [&](const Pending& pending) {
    if (!has_ended(pending.last_group)) return false;
    std::ranges::copy(pending.values, pending.registers.begin());
    return true;
  });
}

void share_with_products() {
  for (const std::size_t chunk : own_thread().copied) --state().unshared.at(chunk);
  own_thread().copied.clear();
}

void note_copied(const void* chunk) {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(chunk) - block().shared());
  if (offset >= block().shared_bytes()) return;
  ++state().unshared.at(offset / kChunk);
  own_thread().copied.push_back(offset / kChunk);
}

}  // namespace plumb::gpu::emulated
