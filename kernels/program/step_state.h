// Hyper-parameters of the update, and the state that changes every iteration.
#pragma once

#include <cstdint>

namespace plumb {

enum class Optimizer { sgd, nag };

// Loss scaling keeps gradients in fp16's range; fp16 only.
// Source: NVIDIA apex and PyTorch's GradScaler: 2^16, doubled after 2000 clean steps, halved on overflow.
struct LossScaling {
  enum class Kind { none, fixed, dynamic };
  Kind kind = Kind::none;
  float initial = 65536;
  int growth_interval = 2000;  // dynamic: clean steps before the scale doubles
};

// Constant over all iterations.
struct UpdateRule {
  Optimizer optimizer = Optimizer::sgd;
  double momentum = 0.875;
  double weight_decay = 3.0517578125e-5;  // applied to parameters with Parameter::decays
  LossScaling loss_scaling;
};

// Per-iteration state in device memory; AdvanceState, the last step, updates it.
struct StepState {
  std::uint64_t iteration = 0;     // current iteration, from 0
  std::uint64_t first_sample = 0;  // global index of this rank's first image, for dropout
  float learning_rate = 0;
  float gradient_scale = 1;  // factor on gradients in the update: 1 / world size (collectives sum)
  float loss_scale = 1;      // gradients carry this factor; the update divides by it
  int clean_steps = 0;       // steps without overflow since the loss scale last changed
};

// What a device's compute lane waits for.
enum class Wait { collectives, data };

// Number of iterations whose metrics a device keeps.
inline constexpr std::uint64_t kMetricsKept = 1024;

}  // namespace plumb
