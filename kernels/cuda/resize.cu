#include <gpu_runtime.h>

#include "kernels/cuda/blocks.h"
#include "kernels/cuda/resize.h"

namespace plumb::cuda {
namespace {

// A thread makes one number of row blockIdx.y along y: rows[y][i] for byte i of the columns that are read.
// Threads of a warp read bytes side by side; rows that several output rows read come from the L2 cache.
__global__ void resize_along_y(ResizeTask task) {
  const int numbers = (task.x.highest - task.x.lowest) * 3;
  const int i = static_cast<int>(blockIdx.x * kThreads + threadIdx.x), y = static_cast<int>(blockIdx.y);
  if (i >= numbers) return;
  const std::uint8_t* pixel =
      task.pixels + task.y.first[y] * task.row_bytes + std::int64_t{task.x.lowest} * 3 + i;
  const std::uint16_t* weights = task.y.weights + std::int64_t{y} * task.y.stride;
  std::uint16_t sum = 0;
  for (int k = 0; k < task.y.count[y]; ++k, pixel += task.row_bytes)
    sum = blended(sum, static_cast<std::uint16_t>(*pixel << 8), weights[k]);
  task.rows[std::int64_t{y} * numbers + i] = sum;
}

// A thread makes one byte of output row blockIdx.y.
__global__ void resize_along_x(ResizeTask task) {
  const int i = static_cast<int>(blockIdx.x * kThreads + threadIdx.x), y = static_cast<int>(blockIdx.y);
  if (i >= task.out_size * 3) return;
  const int x = i / 3, count = task.x.count[x];
  const std::uint16_t* number = task.rows + std::int64_t{y} * (task.x.highest - task.x.lowest) * 3 +
                                (task.x.first[x] - task.x.lowest) * 3 + i % 3;
  const std::uint16_t* weights = task.x.weights + std::int64_t{x} * task.x.stride;
  std::uint16_t sum = resize_rounding(count, task.y.count[y / kResizeStripRows * kResizeStripRows]);
  for (int k = 0; k < count; ++k, number += 3) sum = blended(sum, *number, weights[k]);
  task.out[std::int64_t{y} * task.out_size * 3 + i] = static_cast<std::uint8_t>(sum >> 8);
}

}  // namespace

void launch_resize(const ResizeTask& task, cudaStream_t stream) {
  const auto grid = [&](int bytes) {
    return dim3(blocks_for(bytes, kThreads), static_cast<unsigned>(task.out_size));
  };
  gpu::launch(resize_along_y, grid((task.x.highest - task.x.lowest) * 3), dim3(kThreads), 0, stream, task);
  gpu::launch(resize_along_x, grid(task.out_size * 3), dim3(kThreads), 0, stream, task);
}

}  // namespace plumb::cuda
