// The end of a step: sums and casts of gradients, the search for overflows, updates, the next state.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/conformance/device_under_test.h"
#include "tests/conformance/hand_made.h"

namespace plumb {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();
class Updates : public Conformance {
 protected:
  // Tails of every kind; more than a block's share of 8192; on a real GPU once more of those than run at
  // once, 4 on each of 132 multiprocessors.
  static std::vector<std::int64_t> sizes(bool is_first) {
    return {1, 7, 8, 100, 2049, 8192 + 13, is_first && under_test().is_fast ? 2'500'003 : 40'003};
  }
  static float loss_scale() { return on_gpu() ? 8 : 1; }  // a CPU has none
  static StepState step() {
    return {.learning_rate = 0.3F, .gradient_scale = 0.25F, .loss_scale = loss_scale()};
  }
  static std::vector<DType> dtypes() {
    return on_gpu() ? std::vector{DType::f32, DType::f16, DType::bf16} : std::vector{DType::f32};
  }
  static Doubles numbers(std::int64_t count, std::uint64_t seed) {
    Doubles values = normal_values(DType::f32, static_cast<std::size_t>(std::min(count, kNumbers)), seed);
    values.resize(static_cast<std::size_t>(count));
    for (auto i = static_cast<std::size_t>(kNumbers); i < values.size(); ++i)
      values[i] = values[i - static_cast<std::size_t>(kNumbers)];
    return values;
  }
  static constexpr std::int64_t kNumbers = 99'991;  // other ones; no multiple of a block's share
};
using GpuUpdates = Updates;  // instructions of GPUs, or shapes for their kernels

// All combinations of dtypes in one instruction; `overflow`: what ranks have summed up, or none.
TEST_F(GpuUpdates, OfEveryParameterAreTorchsSgd) {
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::nag})
    for (const std::optional<double> overflow : {std::optional<double>(), {0.0}, {1.0}, {3.0}}) {
      HandMade made;
      made.rule = {.optimizer = optimizer, .momentum = 0.875, .weight_decay = 0.05};
      Update update{.state = made.state(), .overflow = {}, .parameters = {}};
      std::uint64_t seed = 0;
      std::vector<std::pair<BufferId, std::int64_t>> filled;
      const auto add = [&](DType dtype, std::int64_t size) {
        filled.emplace_back(made.add(dtype, {size}), size);
        return filled.back().first;
      };
      for (const std::int64_t size : sizes(optimizer == Optimizer::sgd && !overflow))
        for (const auto& [gradient, copy] : {std::pair{DType::f32, DType::f32},
                                             {DType::f16, DType::f16},
                                             {DType::bf16, DType::bf16},
                                             {DType::f32, DType::f16}}) {
          if (size > 10000 && gradient != DType::f16) continue;
          const ParameterId parameter = made.graph.parameters.size();
          made.graph.parameters.push_back({.name = "weight", .dims = {size}, .decays = parameter % 3 != 0});
          UpdatedParameter one{.parameter = parameter,
                               .master = add(DType::f32, size),
                               .momentum = add(DType::f32, size),
                               .gradient = add(gradient, size),
                               .copies = {}};
          made.program.tensors.parameters.push_back(
              {.master = one.master, .momentum = one.momentum, .gradient = one.gradient});
          if (copy != DType::f32) one.copies.emplace_back(made.add(copy, {size}));
          update.parameters.push_back(one);
        }
      if (overflow) update.overflow = made.add(DType::f32, {1});
      made.add(update);
      CheckedProgram program(*device(), made.graph, made.rule, made.program);
      for (const auto& [id, size] : filled) program.write(id, numbers(size, ++seed));
      if (overflow) program.write(*update.overflow, {*overflow});
      program.write(step());
      program.check(0);
    }
}

TEST_F(Updates, OfSampledRowsLeaveTheOthers) {
  const Doubles samples{7, 0, 10, -1, -1};
  for (const std::int64_t columns : {8, 24, 136, 512})
    for (const DType dtype : dtypes())
      for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::nag})
        for (const std::optional<double> overflow : {std::optional<double>(), {0.0}, {2.0}}) {
          if (overflow && !on_gpu()) continue;
          HandMade made;
          made.graph.parameters = {{.name = "head.weight", .dims = {11, columns}, .decays = columns != 24}};
          made.rule = {.optimizer = optimizer, .momentum = 0.875, .weight_decay = 0.05};
          UpdateRows rows{.parameter = 0,
                          .master = made.add(DType::f32, {11, columns}),
                          .momentum = made.add(DType::f32, {11, columns}),
                          .d_rows = made.add(dtype, {5, columns}),
                          .samples = made.add(DType::i32, {5}),
                          .sample_count = made.add(DType::i32, {1}),
                          .state = made.state()};
          made.program.tensors.parameters = {
              {.master = rows.master, .momentum = rows.momentum, .gradient = rows.d_rows}};
          if (overflow) rows.overflow = made.add(DType::f32, {1});
          made.add(rows);
          CheckedProgram program(*device(), made.graph, made.rule, made.program);
          program.write(rows.master, numbers(11 * columns, 1));
          program.write(rows.momentum, numbers(11 * columns, 2));
          program.write(rows.d_rows, numbers(5 * columns, 3));
          program.write(rows.samples, samples);
          program.write(rows.sample_count, {3});
          if (overflow) program.write(*rows.overflow, {*overflow});
          program.write(step());
          program.check(0);
        }
}

TEST_F(GpuUpdates, FindInfinityAndNaNAnywhere) {
  constexpr std::int64_t kCount = 8192 + 2051;
  for (const DType dtype : dtypes()) {
    HandMade made;
    const FindOverflow search{
        .overflow = made.add(DType::f32, {1}),
        .gradients = {made.add(DType::f32, {9}), made.add(dtype, {kCount}), made.add(DType::f16, {3})}};
    made.add(search);
    CheckedProgram program(*device(), made.graph, made.rule, made.program);
    const double largest = dtype == DType::f16 ? 65504 : 0x1.FEp127;
    for (const double bad : {kInfinity, -kInfinity, kNaN, largest, -largest})
      for (const std::int64_t place : {0, 5, 2047, 8191, 8192, 10240, 10242}) {
        Doubles values = numbers(kCount, 2);
        values[static_cast<std::size_t>(place)] = bad;
        program.write(search.gradients[1], values);
        program.check(0);
      }
    program.write(search.gradients[1], numbers(kCount, 2));
    program.check(0);  // forgets the last one
    program.write(search.gradients[2], {1, 2, kNaN});
    program.check(0);
  }
}

// Grows after clean steps, halves with an overflow, within its limits; a fixed scale stays.
TEST_F(Updates, AdvanceTheStateByItsRule) {
  struct Case {
    LossScaling scaling;
    StepState state;
  };
  using enum LossScaling::Kind;
  for (const Case& one : {Case{{.kind = dynamic, .growth_interval = 3}, {.loss_scale = 1024}},
                          {{.kind = dynamic, .growth_interval = 3}, {.loss_scale = 2}},
                          {{.kind = dynamic, .growth_interval = 1}, {.loss_scale = 0x1p23F}},
                          {{.kind = fixed, .growth_interval = 1}, {.loss_scale = 512}},
                          {{}, {.iteration = kMetricsKept - 1}}}) {
    HandMade made;
    made.rule.loss_scaling = one.scaling;
    AdvanceState advance{.state = made.state(), .overflow = {}};
    if (on_gpu()) advance.overflow = made.add(DType::f32, {1});
    made.add(advance);
    if (!on_gpu() && one.scaling.kind == dynamic) continue;
    CheckedProgram program(*device(), made.graph, made.rule, made.program);
    program.write(one.state);
    for (const double overflow : {0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0}) {
      const StepState before = program.state();
      if (advance.overflow) program.write(*advance.overflow, {overflow});
      program.check(0);
      if (!on_gpu()) continue;
      EXPECT_EQ(device()->metrics(before.iteration).loss_scale, before.loss_scale);
      EXPECT_EQ(device()->metrics(before.iteration).skipped, overflow != 0);
    }
  }
}

TEST_F(GpuUpdates, AddAndCastTensorsOfAnyLength) {
  for (const std::int64_t size : sizes(true)) {
    HandMade made;
    std::vector<BufferId> filled;
    const auto add = [&](DType dtype) { return filled.emplace_back(made.add(dtype, {size})); };
    for (const DType dtype : dtypes()) {
      made.add(Accumulate{.into = add(dtype), .from = add(dtype)});
      for (const DType into : dtypes())
        if (dtype == DType::f32 || into == DType::f32)
          for (const double scale : {1.0, 0.125})
            made.add(Cast{.from = add(dtype), .into = made.add(into, {size}), .scale = scale});
    }
    CheckedProgram program(*device(), made.graph, made.rule, made.program);
    for (const BufferId id : filled) program.write(id, numbers(size, id));
    for (InstructionId id = 0; id < made.program.instructions.size(); ++id) program.check(id);
  }
}

}  // namespace
}  // namespace plumb
