// Operands that the CUDA device refuses, and the clock of its waits.
#include <gtest/gtest.h>

#include <stdexcept>
#include <tuple>

#include "kernels/cuda/own/norm.h"
#include "kernels/cuda/own/optimizer.h"
#include "kernels/device.h"
#include "tests/cuda_host/bound_instruction.h"

namespace plumb::cuda {
namespace {

Graph two_parameters() {
  Graph graph;
  graph.parameters = {{.name = "bias", .dims = {3}, .decays = false}, {.name = "weight", .dims = {2, 2}}};
  return graph;
}

// An instruction that updates the weight before the bias, unlike the graph's order.
struct UpdateInstructions {
  explicit UpdateInstructions(std::optional<double> overflow_flag) {
    bound.rule = {.optimizer = Optimizer::sgd, .momentum = 0.5, .weight_decay = 0.25};
    if (overflow_flag) update.overflow = bound.add(DType::f32, {*overflow_flag});
  }
  void run() { bound.run(update); }

  BoundInstruction bound{two_parameters()};
  BufferId weight = bound.add(DType::f32, {1, 2, 3, 4}), copy = bound.add(DType::f16, 4);
  BufferId bias = bound.add(DType::f32, {1, 2, 3});
  Update update{.state = bound.add_object(
                    State{.step = {.learning_rate = 0.5, .gradient_scale = 0.5, .loss_scale = 4}}),
                .overflow = {},
                .parameters = {{.parameter = 1,
                                .master = weight,
                                .momentum = bound.add(DType::f32, {0, 0, 0, 8}),
                                .gradient = bound.add(DType::f16, {8, 16, 24, 32}),
                                .copies = {copy}},
                               {.parameter = 0,
                                .master = bias,
                                .momentum = bound.add(DType::f32, {0, 0, 0}),
                                .gradient = bound.add(DType::f32, {8, 8, 8}),
                                .copies = {}}}};
};

TEST(UpdateInstructions, UpdateRefusesTensorsOfAnotherSizeAndASecondCopy) {
  UpdateInstructions instruction(std::nullopt);
  const Update good = instruction.update;
  instruction.update.parameters[0].gradient = instruction.update.parameters[1].gradient;
  EXPECT_THROW(instruction.run(), std::logic_error);
  instruction.update = good;
  instruction.update.parameters[0].copies.emplace_back(instruction.copy);
  EXPECT_THROW(instruction.run(), std::logic_error);
  instruction.update = good;
  EXPECT_NO_THROW(instruction.run());
}

TEST(PrepareInstruction, RefusesWhatNoCudaDeviceRuns) {
  BoundInstruction instruction;
  EXPECT_THROW(instruction.run(Recorded{}), std::logic_error);
  EXPECT_THROW(instruction.run(BatchNormForward{.in = 0,
                                                .scale = 0,
                                                .bias = 0,
                                                .running_mean = 0,
                                                .running_variance = 0,
                                                .out = 0,
                                                .mean = 0,
                                                .inv_std = 0}),
               std::logic_error);
}

TEST(NormPrelu, GoesWithNeitherResidualNorReLU) {
  GuardedTensor any(DType::f32, std::vector<double>(16, 1.0));
  const NormApply apply{.in = any.data(),
                        .scale_shift = any.as<float>(),
                        .out = any.data(),
                        .residual = any.data(),
                        .slope = {any.as<float>(), true}};
  EXPECT_THROW(launch_norm_apply(partition_norm(1, 8), DType::f32, apply, nullptr), std::logic_error);
}

TEST(NormSums, AreOfHalves) {
  GuardedTensor any(DType::f32, std::vector<double>(16, 1.0));
  EXPECT_THROW(launch_norm_apply(partition_norm(1, 8), DType::f32, {.in = any.data(), .out = any.data()},
                                 nullptr, {.sums = any.as<float>()}),
               std::logic_error);
}

TEST(StampWait, AddsUpTheWaitsOfAnIteration) {
  for (const auto& [what, waited, other] :
       {std::tuple{Wait::collectives, &State::exposed_ns, &State::data_wait_ns},
        std::tuple{Wait::data, &State::data_wait_ns, &State::exposed_ns}}) {
    State state;
    std::uint64_t before = 0;
    for (int i = 0; i < 3; ++i) {
      launch_stamp_wait(&state, what, false, nullptr);
      EXPECT_GT(state.wait_began_ns, 0U);
      EXPECT_EQ(state.*waited, before) << "the wait isn't over";
      state.wait_began_ns -= 1000;  // pretend it began earlier
      launch_stamp_wait(&state, what, true, nullptr);
      EXPECT_GE(state.*waited, before + 1000);
      before = state.*waited;
    }
    EXPECT_EQ(state.*other, 0U);
  }
}

}  // namespace
}  // namespace plumb::cuda
