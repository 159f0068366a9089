// What the update reads in every iteration, and what changes from one to the next.
#pragma once

#include <cstdint>

namespace plumb {

enum class Optimizer { sgd, nag };

// Factor on the loss that keeps gradients in fp16's range; fp16 only.
// Source: NVIDIA apex and PyTorch's GradScaler: 2^16, doubled after 2000 clean steps, halved on overflow.
struct LossScaling {
  enum class Kind { none, fixed, dynamic };
  Kind kind = Kind::none;
  float initial = 65536;
  int growth_interval = 2000;  // dynamic: clean steps before it doubles
};

// Hyper-parameters of the update, the same at every iteration.
struct UpdateRule {
  Optimizer optimizer = Optimizer::sgd;
  double momentum = 0.875;
  double weight_decay = 3.0517578125e-5;  // applied to parameters with Parameter::decays
  LossScaling loss_scaling;
};

// What changes from iteration to iteration; lives in device memory, and the last step advances it.
struct StepState {
  std::uint64_t iteration = 0;     // of the step that is running, from 0
  std::uint64_t first_sample = 0;  // this rank's first image among those of all ranks, for dropout
  float learning_rate = 0;
  float gradient_scale = 1;  // the update multiplies gradients by it: 1 / world size (collectives sum)
  float loss_scale = 1;      // gradients come multiplied by it, and the update divides by it
  int clean_steps = 0;       // without an overflow, since the loss scale last changed
};

// Iterations whose metrics a device keeps.
inline constexpr std::uint64_t kMetricsKept = 1024;

}  // namespace plumb
