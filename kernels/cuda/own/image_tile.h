// Images cut into tiles of output pixels, for kernels whose blocks compute one tile at a time. For .cu files
// only.
#pragma once

#include <gpu_runtime.h>

#include <cstdint>

namespace plumb::cuda {

struct ImageTile {
  unsigned image;
  int row, column;  // of the first output
};

// Tile `index` of images of h x w outputs: along a row of tiles, then down, then the next image.
template <int kRows, int kColumns>
__device__ ImageTile image_tile_at(std::int64_t h, std::int64_t w, unsigned index) {
  const auto across = static_cast<unsigned>((w + kColumns - 1) / kColumns);
  const auto down = static_cast<unsigned>((h + kRows - 1) / kRows);
  const unsigned line = index / across;
  return {line / down, static_cast<int>(line % down) * kRows, static_cast<int>(index % across) * kColumns};
}

}  // namespace plumb::cuda
