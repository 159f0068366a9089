// Batches from the host.
#pragma once

#include "kernels/instructions/operand.h"

namespace plumb {

// The runner's: copies the next batch to where the device wants it.
struct LoadBatch {
  static constexpr std::string_view kName = "load_batch";
  Write images, labels;  // the staged ones where a PackBatch follows
  static void operands(auto& self, auto&& each) { each("images", self.images, "labels", self.labels); }
};

// Takes the half of the staged batch that the iteration's parity says, in the device's layout and dtype.
struct PackBatch {
  static constexpr std::string_view kName = "pack_batch";
  Read staged_images, staged_labels;  // f32 [2, n, c, h, w], i32 [2, n]
  Read state;
  Write images, labels;  // [n, c, h, w], i32 [n]
  static void operands(auto& self, auto&& each) {
    each("staged_images", self.staged_images, "staged_labels", self.staged_labels, "state", self.state,
         "images", self.images, "labels", self.labels);
  }
};

}  // namespace plumb
