// Instructions outside the network: batches from the host, and those that no device runs.
#pragma once

#include <vector>

#include "kernels/program/instructions/operand.h"

namespace plumb {

// Runs in the runner: copies the next batch to the device.
struct LoadBatch {
  static constexpr std::string_view kName = "load_batch";
  Write images, labels;  // staging buffers
  static void operands(auto& self, auto&& each) { each("images", self.images, "labels", self.labels); }
};

// value = pixel * factor + offset, pixels from 0 to 255; red, green, blue.
struct Normalization {
  float factor[3] = {1, 1, 1}, offset[3] = {};
};

// Normalizes one part of the staging buffer, on GPUs of two, chosen by the iteration's parity, and converts
// it to the device's layout and dtype.
struct PackBatch {
  static constexpr std::string_view kName = "pack_batch";
  Read staged_images, staged_labels;  // u8 [parts, n, h, w, 3], i32 [parts, n]
  Read state;
  Write images, labels;  // [n, 3, h, w], i32 [n]
  Normalization normalization = {};
  static void operands(auto& self, auto&& each) {
    each("staged_images", self.staged_images, "staged_labels", self.staged_labels, "state", self.state,
         "images", self.images, "labels", self.labels);
  }
};

struct AnyOperand {
  BufferId buffer;
  Access kind;
  constexpr Access access() const { return kind; }
};

// An instruction that no device runs, for Programs read from a file or built for simulation.
struct Recorded {
  static constexpr std::string_view kName = "recorded";
  std::vector<AnyOperand> uses = {};
  static void operands(auto& self, auto&& each) { each("uses", self.uses); }
};

}  // namespace plumb
