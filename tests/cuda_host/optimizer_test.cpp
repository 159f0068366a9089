// The end of a step on the emulated GPU: update, overflow search, next state.
#include "kernels/cuda/optimizer.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "kernels/device.h"
#include "tests/cuda_host/guarded_tensor.h"

namespace plumb::cuda {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// One parameter as the update sees it, and the chunks that cover it.
struct Tensor {
  Tensor(std::size_t count, DType gradient_dtype, std::optional<DType> copy_dtype, bool decaying)
      : master(DType::f32, normal_values(DType::f32, count, count)),
        momentum(DType::f32, normal_values(DType::f32, count, count + 1)),
        gradient(gradient_dtype, normal_values(gradient_dtype, count, count + 2)),
        decays(decaying) {
    if (copy_dtype) copy = std::make_unique<GuardedTensor>(*copy_dtype, count);
  }

  void add_chunks(std::vector<UpdateChunk>& chunks) {
    const auto elements = static_cast<std::int64_t>(master.elements());
    for (std::int64_t first = 0; first < elements; first += kChunkElements) {
      const auto place = [&](GuardedTensor& at) {
        return at.data() + static_cast<std::size_t>(first) * bytes_of(at.dtype());
      };
      chunks.push_back({.master = master.as<float>() + first,
                        .momentum = momentum.as<float>() + first,
                        .gradient = place(gradient),
                        .copy = copy ? place(*copy) : nullptr,
                        .count = static_cast<std::int32_t>(std::min(kChunkElements, elements - first)),
                        .gradient_dtype = gradient.dtype(),
                        .copy_dtype = copy ? copy->dtype() : DType::f32,
                        .decays = decays});
    }
  }

  GuardedTensor master, momentum, gradient;
  std::unique_ptr<GuardedTensor> copy;
  bool decays;
};

// Tails of every kind, more than a chunk, and all dtype combinations of a run.
std::vector<std::unique_ptr<Tensor>> make_tensors() {
  std::vector<std::unique_ptr<Tensor>> tensors;
  tensors.push_back(std::make_unique<Tensor>(1, DType::f32, std::nullopt, false));
  tensors.push_back(std::make_unique<Tensor>(7, DType::f32, std::nullopt, true));
  tensors.push_back(std::make_unique<Tensor>(8, DType::f16, DType::f16, true));
  tensors.push_back(std::make_unique<Tensor>(2049, DType::bf16, DType::bf16, true));
  tensors.push_back(std::make_unique<Tensor>(100, DType::f32, DType::f16, false));
  tensors.push_back(std::make_unique<Tensor>(kChunkElements + 13, DType::f16, DType::f16, false));
  return tensors;
}

std::vector<UpdateChunk> chunks_of(const std::vector<std::unique_ptr<Tensor>>& tensors) {
  std::vector<UpdateChunk> chunks;
  for (const auto& tensor : tensors) tensor->add_chunks(chunks);
  return chunks;
}

struct Parameters {
  std::vector<double> master, momentum;
};

// torch.optim.SGD with dampening 0 (documentation of PyTorch 2: "velocity and gradient").
Parameters updated(Tensor& tensor, const UpdateRule& rule, const StepState& state) {
  Parameters result{tensor.master.values(), tensor.momentum.values()};
  const std::vector<double> gradient = tensor.gradient.values();
  const double decay = tensor.decays ? rule.weight_decay : 0;
  const double scale = static_cast<double>(state.gradient_scale) / state.loss_scale;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double slope = scale * gradient[i] + decay * result.master[i];
    result.momentum[i] = rule.momentum * result.momentum[i] + slope;
    const double step =
        rule.optimizer == Optimizer::nag ? slope + rule.momentum * result.momentum[i] : result.momentum[i];
    result.master[i] -= state.learning_rate * step;
  }
  return result;
}

const StepState kStep{.learning_rate = 0.3F, .gradient_scale = 0.25F, .loss_scale = 8};

TEST(Update, IsPyTorchsSgdWithAndWithoutNesterov) {
  for (Optimizer optimizer : {Optimizer::sgd, Optimizer::nag}) {
    for (const double weight_decay : {0.0, 0.05}) {
      const UpdateRule rule{.optimizer = optimizer, .momentum = 0.875, .weight_decay = weight_decay};
      const auto tensors = make_tensors();
      std::vector<Parameters> wanted;
      for (const auto& tensor : tensors) wanted.push_back(updated(*tensor, rule, kStep));
      const std::vector<UpdateChunk> chunks = chunks_of(tensors);
      const State state{.step = kStep};
      const float overflow = 0;
      launch_update(rule, chunks.data(), chunks.size(), &state,
                    optimizer == Optimizer::nag ? &overflow : nullptr, nullptr);
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        SCOPED_TRACE(testing::Message() << "tensor " << i);
        expect_close(tensors[i]->master.values(), wanted[i].master, DType::f32, 8);
        expect_close(tensors[i]->momentum.values(), wanted[i].momentum, DType::f32, 8);
        if (!tensors[i]->copy) continue;
        EXPECT_EQ(tensors[i]->copy->values(),
                  rounded(tensors[i]->copy->dtype(), tensors[i]->master.values()));
      }
    }
  }
}

TEST(Update, ChangesNothingAfterAnOverflow) {
  for (const float overflow : {1.0F, 3.0F}) {  // ranks sum theirs
    const auto tensors = make_tensors();
    std::vector<std::vector<std::byte>> before;
    for (const auto& tensor : tensors) {
      before.push_back(tensor->master.bytes());
      before.push_back(tensor->momentum.bytes());
      if (tensor->copy) before.push_back(tensor->copy->bytes());
    }
    const std::vector<UpdateChunk> chunks = chunks_of(tensors);
    const State state{.step = kStep};
    launch_update({}, chunks.data(), chunks.size(), &state, &overflow, nullptr);
    std::vector<std::vector<std::byte>> after;
    for (const auto& tensor : tensors) {
      after.push_back(tensor->master.bytes());
      after.push_back(tensor->momentum.bytes());
      if (tensor->copy) after.push_back(tensor->copy->bytes());
    }
    EXPECT_EQ(after, before);
  }
}

float overflow_of(const std::vector<GuardedTensor*>& gradients, float left_over) {
  std::vector<GradientChunk> chunks;
  for (GuardedTensor* gradient : gradients) {
    const auto elements = static_cast<std::int64_t>(gradient->elements());
    for (std::int64_t first = 0; first < elements; first += kChunkElements)
      chunks.push_back(
          {.gradient = gradient->data() + static_cast<std::size_t>(first) * bytes_of(gradient->dtype()),
           .count = static_cast<std::int32_t>(std::min(kChunkElements, elements - first)),
           .dtype = gradient->dtype()});
  }
  GuardedTensor overflow(DType::f32, std::vector<double>{left_over});
  launch_find_overflow(chunks.data(), chunks.size(), overflow.as<float>(), nullptr);
  return *overflow.as<float>();
}

TEST(FindOverflow, SeesInfinityAndNaNAnywhere) {
  const std::size_t count = kChunkElements + 2051;
  GuardedTensor clean(DType::f32, normal_values(DType::f32, 9, 1));
  for (DType dtype : kStorageTypes) {
    for (const double bad : {kInfinity, -kInfinity, kNaN}) {
      for (std::size_t place :
           {std::size_t{0}, std::size_t{5}, std::size_t{2047}, std::size_t{kChunkElements - 1},
            std::size_t{kChunkElements}, count - 3, count - 1}) {
        std::vector<double> values = normal_values(dtype, count, 2);
        values[place] = bad;
        GuardedTensor gradient(dtype, values);
        EXPECT_EQ(overflow_of({&clean, &gradient}, 0), 1) << name_of(dtype) << " " << bad << " at " << place;
      }
    }
  }
}

TEST(FindOverflow, ForgetsTheLastOneWhereAllIsFinite) {
  const double largest[] = {std::numeric_limits<float>::max(), 65504, 3.3895313892515355e38};
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<double> values = normal_values(kStorageTypes[i], 3000, 3);
    values[17] = largest[i];
    values[2999] = -largest[i];
    GuardedTensor gradient(kStorageTypes[i], values);
    for (const float left_over : {0.0F, 1.0F, 4.0F}) EXPECT_EQ(overflow_of({&gradient}, left_over), 0);
  }
}

// Advances iterations and returns their records.
struct States {
  LossScaling scaling;
  State state;
  std::vector<IterationRecord> records = std::vector<IterationRecord>(kMetricsKept);

  const IterationRecord& advance(std::optional<float> overflow) {
    const std::uint64_t iteration = state.step.iteration;
    launch_advance_state(scaling, &state, overflow ? &*overflow : nullptr, records.data(), nullptr);
    return records[iteration % kMetricsKept];
  }
};

TEST(AdvanceState, CountsIterationsAndTellsWhatTheyUsed) {
  States states{.scaling = {.kind = LossScaling::Kind::fixed}, .state = {.step = {.loss_scale = 128}}};
  states.state.step.iteration = kMetricsKept - 1;
  states.state.exposed_ns = 77;
  const IterationRecord& record = states.advance(0.0F);
  EXPECT_EQ(&record, &states.records.back());
  EXPECT_EQ(record.loss_scale, 128);
  EXPECT_EQ(record.skipped, 0);
  EXPECT_EQ(record.exposed_ns, 77U);
  EXPECT_EQ(states.state.step.iteration, kMetricsKept);
  EXPECT_EQ(states.state.exposed_ns, 0U);
  const IterationRecord& next = states.advance(std::nullopt);
  EXPECT_EQ(&next, &states.records.front());
  EXPECT_EQ(next.exposed_ns, 0U);
}

TEST(AdvanceState, DoublesTheLossScaleAfterCleanSteps) {
  States states{.scaling = {.kind = LossScaling::Kind::dynamic, .growth_interval = 3},
                .state = {.step = {.loss_scale = 1024}}};
  std::vector<float> used;
  for (int i = 0; i < 8; ++i) used.push_back(states.advance(0.0F).loss_scale);
  EXPECT_EQ(used, (std::vector<float>{1024, 1024, 1024, 2048, 2048, 2048, 4096, 4096}));
}

TEST(AdvanceState, HalvesTheLossScaleOnOverflowAndCountsAnew) {
  States states{.scaling = {.kind = LossScaling::Kind::dynamic, .growth_interval = 3},
                .state = {.step = {.loss_scale = 1024}}};
  std::vector<float> used;
  std::vector<int> skipped;
  for (const float overflow : {0.0F, 0.0F, 2.0F, 0.0F, 0.0F, 0.0F, 0.0F, 1.0F, 1.0F, 0.0F}) {
    const IterationRecord& record = states.advance(overflow);
    used.push_back(record.loss_scale);
    skipped.push_back(record.skipped);
  }
  EXPECT_EQ(used, (std::vector<float>{1024, 1024, 1024, 512, 512, 512, 1024, 1024, 512, 256}));
  EXPECT_EQ(skipped, (std::vector<int>{0, 0, 1, 0, 0, 0, 0, 1, 1, 0}));
  EXPECT_EQ(states.state.step.clean_steps, 1);
}

TEST(AdvanceState, KeepsTheLossScaleWithinItsLimits) {
  States low{.scaling = {.kind = LossScaling::Kind::dynamic}, .state = {.step = {.loss_scale = 2}}};
  for (int i = 0; i < 3; ++i) low.advance(1.0F);
  EXPECT_EQ(low.state.step.loss_scale, 1);
  States high{.scaling = {.kind = LossScaling::Kind::dynamic, .growth_interval = 1},
              .state = {.step = {.loss_scale = 0x1p23F}}};
  for (int i = 0; i < 3; ++i) high.advance(0.0F);
  EXPECT_EQ(high.state.step.loss_scale, 0x1p24F);
}

TEST(AdvanceState, LeavesAFixedLossScaleAloneAndStillSkips) {
  States states{.scaling = {.kind = LossScaling::Kind::fixed, .growth_interval = 1},
                .state = {.step = {.loss_scale = 512}}};
  EXPECT_EQ(states.advance(1.0F).skipped, 1);
  EXPECT_EQ(states.advance(0.0F).skipped, 0);
  EXPECT_EQ(states.state.step.loss_scale, 512);
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
