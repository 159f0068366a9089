// Interprets a Graph in double precision with naive loops: the ground truth for devices. Tensors are [n, c,
// h, w] and the public dims of models/graph.h, row-major. For small Graphs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/device.h"
#include "models/graph.h"

namespace plumb {

using Doubles = std::vector<double>;

// The state that training changes: one vector per Graph::parameters (likewise momenta) and per
// Graph::statistics.
struct ReferenceState {
  std::vector<Doubles> parameters, momenta, statistics;
};

// Forward and backward of one batch. `value_gradients[v]` is d loss / d values[v] for every value of the
// Graph, images included; `statistics` are the running statistics after this batch.
struct ReferencePass {
  double loss = 0;
  int top1 = 0, top5 = 0;  // images whose label's logit is exceeded by none, by at most four
  std::vector<Doubles> values, value_gradients, parameter_gradients, statistics;
};

// Position of a pass in training, for operations that depend on it (dropout).
struct ReferencePosition {
  std::uint64_t iteration = 0, first_sample = 0;  // as in StepState
};

// images: [n, c, h, w] of values[0]; labels: [n].
ReferencePass reference_pass(const Graph& graph, const ReferenceState& state, std::span<const double> images,
                             std::span<const std::int64_t> labels, ReferencePosition position = {});

// g' = gradient_scale * g + weight_decay * w (decay only where Parameter::decays); v = momentum * v + g'.
// sgd: w -= lr * v (torch.optim.SGD). nag: w -= lr * (g' + momentum * v) (torch.optim.SGD(nesterov=True)),
// which for a constant lr is MXNet's NAG, u = momentum * u - lr * g', w += momentum * u - lr * g', with u =
// -lr * v. Untrained parameters stay as they are.
void reference_update(const Graph& graph, const UpdateRule& rule, double learning_rate, double gradient_scale,
                      const std::vector<Doubles>& gradients, ReferenceState& state);

// `iterations` steps on one batch, from iteration 0: `passes[i]` is step i's, before its update.
struct ReferenceTraining {
  std::vector<ReferencePass> passes;
  ReferenceState end;
};
ReferenceTraining reference_train(const Graph& graph, ReferenceState state, std::span<const double> images,
                                  std::span<const std::int64_t> labels, const UpdateRule& rule,
                                  double learning_rate, int iterations, std::uint64_t first_sample = 0);

}  // namespace plumb
