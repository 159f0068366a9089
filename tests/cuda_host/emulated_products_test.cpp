// What the emulated GPU says where products of warpgroups would be undefined on a GPU.
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

// Left: chunks [2, 64], as their [depth / 8, row]. Right: [2, 232].
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
  std::uint64_t a = matrix_at(shared, kRows * kChunk, kEight);
  const std::uint64_t b = matrix_at(shared + kLeftBytes + (fault == Fault::misaligned ? 8 : 0),
                                    kColumns * kChunk + (fault == Fault::beyond ? kChunk : 0), kEight);
  if (fault == Fault::other_descriptors) a += threadIdx.x % 32 == 5;
  float sums[kWarpgroupSums];
  if (fault != Fault::not_begun) begin_products();
  multiply_warpgroup<__half, false>(sums, a, b, false);
  multiply_warpgroup<__half, false>(sums, a, b, true);
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
  std::vector<__half> left = std::vector<__half>(kRows * kDepth, 1.0F),
                      right = std::vector<__half>(kColumns * kDepth, 2.0F);
  std::vector<float> out = std::vector<float>(kRows * kColumns);
  std::string run(Fault fault) {
    try {
      launch(product, 1, kThreads, kBytes, nullptr, fault, left.data(), right.data(), out.data());
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST(EmulatedProducts, SumsThatAreReadTooEarlyAreNotANumber) {
  for (const Fault fault : {Fault::not_waited, Fault::open_group}) {
    Matrices matrices;
    EXPECT_EQ(matrices.run(fault), "");
    EXPECT_TRUE(std::isnan(matrices.out[0]));
  }
}

TEST(EmulatedProducts, MisuseIsTold) {
  const auto expect = [](Fault fault, const std::string& part) {
    const std::string told = Matrices().run(fault);
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

}  // namespace
}  // namespace plumb::gpu
