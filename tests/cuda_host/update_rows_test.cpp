// The update of single rows of a parameter on the emulated GPU, through its prepare function.
#include <gtest/gtest.h>

#include "tests/cuda_host/bound_instruction.h"

namespace plumb::cuda {
namespace {

using Values = std::vector<double>;

constexpr std::size_t kRows = 11, kCapacity = 5;
const Values kSamples{7, 0, 10, -1, -1};
constexpr StepState kStep{.learning_rate = 0.3F, .gradient_scale = 0.25F, .loss_scale = 8};

struct Case {
  std::size_t columns = 8;
  DType dtype = DType::f32;  // of the gradient
  UpdateRule rule;
  bool decays = true;
  std::optional<float> overflow;
};

struct Parameters {
  Values master, momentum;
};

// torch.optim.SGD with dampening 0 on the first three samples (documentation of PyTorch 2).
void update(const Case& by, const Values& gradient, Parameters& at) {
  const double decay = by.decays ? by.rule.weight_decay : 0, mu = by.rule.momentum;
  for (std::size_t k = 0; k < 3; ++k) {
    for (std::size_t i = 0; i < by.columns; ++i) {
      const std::size_t place = static_cast<std::size_t>(kSamples[k]) * by.columns + i;
      const double slope =
          gradient[k * by.columns + i] * kStep.gradient_scale / kStep.loss_scale + decay * at.master[place];
      double& velocity = at.momentum[place];
      velocity = mu * velocity + slope;
      at.master[place] -=
          kStep.learning_rate * (by.rule.optimizer == Optimizer::nag ? slope + mu * velocity : velocity);
    }
  }
}

void expect_update(const Case& by) {
  Graph graph;
  graph.parameters = {
      {.name = "head.weight", .dims = {kRows, static_cast<std::int64_t>(by.columns)}, .decays = by.decays}};
  Parameters wanted{normal_values(DType::f32, kRows * by.columns, 1),
                    normal_values(DType::f32, kRows * by.columns, 2)};
  const Values gradient = normal_values(by.dtype, kCapacity * by.columns, 3);
  BoundInstruction bound(graph);
  bound.rule = by.rule;
  UpdateRows rows{.parameter = 0,
                  .master = bound.add(DType::f32, wanted.master),
                  .momentum = bound.add(DType::f32, wanted.momentum),
                  .d_rows = bound.add(by.dtype, gradient),
                  .samples = bound.add(DType::i32, kSamples),
                  .sample_count = bound.add(DType::i32, {3}),
                  .state = bound.add_object(State{.step = kStep})};
  bound.buffer(rows.master).dims = graph.parameters.front().dims;
  if (by.overflow) rows.overflow = bound.add(DType::f32, {*by.overflow});
  bound.run(rows);
  const Parameters before = wanted;
  update(by, gradient, wanted);
  if (by.overflow.value_or(0) != 0) wanted = before;
  expect_close(bound.values(rows.master), wanted.master, DType::f32, 8);
  expect_close(bound.values(rows.momentum), wanted.momentum, DType::f32, 8);
  for (std::size_t i = by.columns; i < 7 * by.columns; ++i)
    ASSERT_EQ(bound.values(rows.master)[i], before.master[i]) << "a row that was not sampled";
}

TEST(UpdateRows, UpdatesTheSampledOnesAsAnyOtherParameter) {
  for (std::size_t columns : {8, 24, 136, 512})
    for (DType dtype : kStorageTypes)
      for (Optimizer optimizer : {Optimizer::sgd, Optimizer::nag}) {
        SCOPED_TRACE(testing::Message() << columns << " columns, " << name_of(dtype));
        expect_update({.columns = columns,
                       .dtype = dtype,
                       .rule = {.optimizer = optimizer, .momentum = 0.9, .weight_decay = 0.05},
                       .decays = columns != 24,
                       .overflow = columns == 8 ? std::optional(0.0F) : std::nullopt});
      }
}

TEST(UpdateRows, ChangesNothingAfterAnOverflow) {
  expect_update({.columns = 8, .rule = {.momentum = 0.9, .weight_decay = 0.05}, .overflow = 2.0F});
}

}  // namespace
}  // namespace plumb::cuda
