// Products of warpgroups on the emulated GPU, and what it says where a GPU would compute something undefined.
#include <gpu_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"

namespace plumb::gpu {
namespace {

constexpr int kRows = 64, kColumns = 2 * kWarpgroupSums, kDepth = 16, kThreads = 128;
constexpr int kChunk = 16, kEight = 8 * kChunk;
constexpr int kLeftBytes = kRows * kDepth * 2, kBytes = kLeftBytes + kColumns * kDepth * 2;

enum class Fault {
  none,
  not_begun,          // no begin_products()
  not_waited,         // sums are read at once
  open_group,         // the group was never closed
  not_shared,         // copies without share_with_products()
  changed,            // copies into what a product reads, or loads into its registers
  misaligned,         // an address that a descriptor can't hold
  beyond,             // the last column lies outside shared memory
  other_descriptors,  // a lane gives another matrix
};

// Left: chunks [2, 64], as their [depth / 8, row] or with kTransposed [row / 8, depth]. Right: [2, 232].
template <bool kTransposed>
__global__ void product(Fault fault, const __half* left, const __half* right, float* out) {
  auto* const shared = dynamic_shared<unsigned char>();
  const auto thread = static_cast<int>(threadIdx.x);
  const auto copy = [&](int chunk) {
    const int of_left = kLeftBytes / kChunk;
    copy_to_shared(shared + chunk * kChunk,
                   chunk < of_left ? left + 8 * chunk : right + 8 * (chunk - of_left), true);
  };
  for (int chunk = thread; chunk < kBytes / kChunk; chunk += kThreads) copy(chunk);
  wait_for_copies();
  if (fault != Fault::not_shared) share_with_products();
  meet(1, kThreads);
  const int row_eights = kTransposed ? 16 * kChunk : kEight;  // of a matrix's rows, and of its depth
  const int depth_eights = kTransposed ? kEight : kRows * kChunk;
  std::uint64_t a = matrix_at(shared, depth_eights, row_eights);
  const std::uint64_t b = matrix_at(shared + kLeftBytes + (fault == Fault::misaligned ? 8 : 0),
                                    kColumns * kChunk + (fault == Fault::beyond ? kChunk : 0), kEight);
  if (fault == Fault::other_descriptors) a += threadIdx.x % 32 == 5;
  float sums[kWarpgroupSums];
  if (fault != Fault::not_begun) begin_products();
  multiply_warpgroup<__half, kTransposed>(sums, a, b, false);
  multiply_warpgroup<__half, kTransposed>(sums, a, b, true);
  if (fault == Fault::changed) {
    meet(1, kThreads);
    if (thread == 0) copy_to_shared(shared, right + 8, true);
    wait_for_copies();
    share_with_products();
    meet(1, kThreads);
  }
  if (fault != Fault::open_group) end_product_group();
  if (fault != Fault::not_waited) wait_for_product_groups<0>();
  for (int i = 0; i < kWarpgroupSums; ++i) {
    const int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8,
              column = i / 4 * 8 + thread % 4 * 2 + i % 2;
    out[row * kColumns + column] = sums[i];
  }
}

struct Matrices {
  std::vector<__half> left, right;
  std::vector<float> out, expected;
  explicit Matrices(bool transposed)
      : left(kRows * kDepth), right(kColumns * kDepth), out(kRows * kColumns), expected(kRows * kColumns) {
    const auto at = [](int row, int k) { return static_cast<float>((row * 7 + k * 3) % 11 - 5); };
    for (int k = 0; k < kDepth; ++k) {
      for (int row = 0; row < kRows; ++row)
        left[transposed ? (row / 8 * kDepth + k) * 8 + row % 8 : (k / 8 * kRows + row) * 8 + k % 8] =
            at(row, k);
      for (int column = 0; column < kColumns; ++column)
        right[(k / 8 * kColumns + column) * 8 + k % 8] = at(k, column);
    }
    for (int row = 0; row < kRows; ++row)
      for (int column = 0; column < kColumns; ++column)
        for (int k = 0; k < kDepth; ++k) expected[row * kColumns + column] += 2 * at(row, k) * at(k, column);
  }
  std::string run(Fault fault = Fault::none) {
    try {
      launch(product<false>, 1, kThreads, kBytes, nullptr, fault, left.data(), right.data(), out.data());
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST(EmulatedProducts, MultiplyMatricesInEitherOrder) {
  Matrices rows(false), columns(true);
  EXPECT_EQ(rows.run(), "");
  EXPECT_EQ(rows.out, rows.expected);
  launch(product<true>, 1, kThreads, kBytes, nullptr, Fault::none, columns.left.data(), columns.right.data(),
         columns.out.data());
  EXPECT_EQ(columns.out, columns.expected);
}

// Left, from registers, and right: chunks [row or column / 8, depth] of [64, 16].
__global__ void product_of_registers(Fault fault, const __half* left, const __half* right, float* out) {
  auto* const held = dynamic_shared<uint4>();
  const auto thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  copy_to_shared(held + thread, left + 8 * thread, true);
  copy_to_shared(held + kThreads + thread, right + 8 * thread, true);
  wait_for_copies();
  share_with_products();
  meet(1, kThreads);
  const uint4* const row = held + (2 * warp + lane / 8 % 2) * kDepth + lane / 16 * 8 + lane % 8;
  unsigned of_left[4];
  load_transposed_matrices(of_left, row);
  float sums[kSquareSums] = {};
  begin_products();
  multiply_warpgroup<__half>(sums, of_left, matrix_at(held + kThreads, kEight, 2 * kEight));
  multiply_warpgroup<__half>(sums, of_left, matrix_at(held + kThreads, kEight, 2 * kEight));
  end_product_group();
  if (fault == Fault::changed && warp == 3) load_transposed_matrices(of_left, held + lane);
  wait_for_product_groups<0>();
  for (int i = 0; i < kSquareSums; ++i)
    out[(warp * 16 + lane / 4 + i / 2 % 2 * 8) * kRows + i / 4 * 8 + lane % 4 * 2 + i % 2] = sums[i];
}

TEST(EmulatedProducts, MultiplyRegistersByAMatrixOfAdjacentColumns) {
  const auto at = [](int row, int k) { return static_cast<float>((row * 7 + k * 3) % 11 - 5); };
  std::vector<__half> left(kRows * kDepth), right(kRows * kDepth);
  std::vector<float> out(kRows * kRows), expected(kRows * kRows);
  for (int k = 0; k < kDepth; ++k)
    for (int line = 0; line < kRows; ++line) {
      const int place = (line / 8 * kDepth + k) * 8 + line % 8;
      left[place] = at(line, k), right[place] = at(k, line);
      for (int column = 0; column < kRows; ++column)
        expected[line * kRows + column] += 2 * at(line, k) * at(k, column);
    }
  const auto run = [&](Fault fault) {
    launch(product_of_registers, 1, kThreads, 2 * kThreads * kChunk, nullptr, fault, left.data(),
           right.data(), out.data());
  };
  run(Fault::none);
  EXPECT_EQ(out, expected);
  try {
    run(Fault::changed);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("have changed while a product read them"), std::string::npos)
        << error.what();
  }
}

TEST(EmulatedProducts, SumsThatAreReadTooEarlyAreNotANumber) {
  for (const Fault fault : {Fault::not_waited, Fault::open_group}) {
    Matrices matrices(false);
    EXPECT_EQ(matrices.run(fault), "");
    EXPECT_TRUE(std::isnan(matrices.out[0]));
  }
}

TEST(EmulatedProducts, MisuseIsTold) {
  const auto expect = [](Fault fault, const std::string& part) {
    const std::string told = Matrices(false).run(fault);
    EXPECT_NE(told.find(part), std::string::npos) << told;
  };
  expect(Fault::not_begun, "comes before begin_products()");
  expect(Fault::not_shared, "before share_with_products()");
  expect(Fault::changed, "have changed while a product read them");
  expect(Fault::misaligned, "not a multiple of 16");
  expect(Fault::beyond, "beyond the block's shared memory");
  expect(Fault::other_descriptors, "lanes give other matrices");
}

__global__ void two_roles(int* shown, bool arrives) {
  auto* const held = dynamic_shared<int>();
  if (threadIdx.x < 64) {
    held[threadIdx.x] = static_cast<int>(threadIdx.x);
    if (arrives || threadIdx.x < 32) arrive(3, 128);
  } else {
    meet(3, 128);
    shown[threadIdx.x - 64] = held[127 - threadIdx.x];
  }
}

TEST(EmulatedProducts, ANamedBarrierWaitsForThoseThatOnlyArrive) {
  std::vector<int> shown(64);
  launch(two_roles, 1, 128, 64 * sizeof(int), nullptr, shown.data(), true);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(shown[static_cast<std::size_t>(i)], 63 - i);
  try {
    launch(two_roles, 1, 128, 64 * sizeof(int), nullptr, shown.data(), false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("64 threads wait at emulated_products_test.cpp:"),
              std::string::npos)
        << error.what();
  }
}

__global__ void transpose(const unsigned* in, unsigned* out) {
  auto* const held = dynamic_shared<uint4>();
  unsigned words[4], found[4];
  for (int i = 0; i < 4; ++i) words[i] = in[threadIdx.x * 4 + static_cast<unsigned>(i)];
  store_transposed_matrices(held + threadIdx.x, words);
  __syncwarp();
  load_transposed_matrices(found, held + threadIdx.x);
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + static_cast<unsigned>(i)] = found[i];
}

TEST(EmulatedProducts, MatricesStoredTransposedAreLoadedSo) {
  std::vector<unsigned> in(128), out(128);
  for (unsigned i = 0; i < 128; ++i) in[i] = i * 0x10003U;
  launch(transpose, 1, 32, 32 * sizeof(uint4), nullptr, in.data(), out.data());
  EXPECT_EQ(out, in);
}

}  // namespace
}  // namespace plumb::gpu
