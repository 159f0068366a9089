#include "kernels/cuda/resize.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "bench/data/resizer.h"
#include "kernels/cuda/runtime.h"

namespace plumb::cuda {
namespace {

template <typename T>
T* to_device(const std::vector<T>& values, std::vector<DeviceMemory>& held) {
  held.push_back(allocate_device(values.size() * sizeof(T)));
  check(cudaMemcpy(held.back().get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return reinterpret_cast<T*>(held.back().get());
}

DeviceAxis to_device(const ResizeAxis& axis, std::vector<DeviceMemory>& held) {
  return {.first = to_device(axis.first, held),
          .count = to_device(axis.count, held),
          .weights = to_device(axis.weights, held),
          .stride = static_cast<int>(axis.stride),
          .lowest = axis.lowest,
          .highest = axis.highest};
}

struct ResizeCase {
  ImageSize size;
  Box box;
  int out_size;
};

// Shrunk much, a little, enlarged, parts inside, an odd number of rows, a single pixel.
class CudaResize : public testing::TestWithParam<ResizeCase> {};

TEST_P(CudaResize, GivesTheBytesOfTheCpu) {
  const auto [size, box, out_size] = GetParam();
  const std::size_t pixels = static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height);
  std::vector<std::uint8_t> four(pixels * 4), three(pixels * 3);
  for (std::size_t i = 0; i < pixels; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      four[i * 4 + c] = three[i * 3 + c] = static_cast<std::uint8_t>(random_block({5, 6}, i * 3 + c)[0]);
  Resizer resizer;
  for (const bool flip : {false, true}) {
    std::vector<std::uint8_t> wanted(static_cast<std::size_t>(out_size * out_size) * 3), found(wanted.size());
    resizer.resize({size, four}, box, flip, out_size, wanted);
    const ResizePlan& plan = resizer.plan(size, box, flip, out_size);
    std::vector<DeviceMemory> held;
    const ResizeTask task{.pixels = to_device(three, held),
                          .row_bytes = size.width * 3,
                          .x = to_device(plan.x, held),
                          .y = to_device(plan.y, held),
                          .out_size = out_size,
                          .rows = to_device(std::vector<std::uint16_t>(resized_rows(plan)), held),
                          .out = to_device(found, held)};
    launch_resize(task, nullptr);
    check(cudaDeviceSynchronize());
    check(cudaMemcpy(found.data(), task.out, found.size(), cudaMemcpyDeviceToHost));
    EXPECT_EQ(found, wanted) << flip;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, CudaResize,
                         testing::Values(ResizeCase{{200, 90}, {0, 0, 200, 90}, 16},
                                         ResizeCase{{50, 40}, {7, 3, 20, 31}, 33},
                                         ResizeCase{{33, 70}, {1.25, 10.75, 30.5, 40.1}, 17},
                                         ResizeCase{{1, 1}, {0, 0, 1, 1}, 8}));

}  // namespace
}  // namespace plumb::cuda
