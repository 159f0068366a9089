// Steps of norms as a Program has them, through prepare_norm: which use is which operand, and the passes that
// follow from those that are there.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>

#include "kernels/cuda/binding.h"
#include "kernels/cuda/norm_partition.h"
#include "kernels/lowering.h"
#include "tests/cuda_host/bound_step.h"
#include "tests/cuda_host/norm_reference.h"
#include "tests/cuda_host/operand.h"

namespace plumb::cuda {
namespace {

constexpr DType kHalf = DType::f16;
constexpr std::int64_t kImages = 3, kHeight = 5, kWidth = 7, kChannels = 24;
constexpr std::size_t kPixels = kImages * kHeight * kWidth;
constexpr std::size_t kElements = kPixels * kChannels;

// One step over one value, and the memory of its operands.
class NormStep {
 public:
  NormStep(StepKind kind, Activation activation) {
    graph_.values = {{"in", {kImages, kHeight, kWidth, kChannels}}};
    graph_.ops = {Norm{.activation = activation, .epsilon = kNormEpsilon, .momentum = 0.25}};
    step_.kind = kind;
    step_.op = 0;
  }

  BufferId read(DType dtype, const Values& values) { return add(dtype, values, Access::read); }
  BufferId update(DType dtype, const Values& values) { return add(dtype, values, Access::read_write); }
  BufferId write(DType dtype, std::size_t elements) { return add(dtype, elements, Access::write); }
  Values values(BufferId buffer) const { return operands_[buffer].values(); }
  std::size_t workspace_bytes() const { return step_.workspace_bytes; }

  void run() {
    NoConvolutions convolutions;
    const std::unique_ptr<GemmEngine> products = make_gemm_engine();
    const UpdateRule rule;
    Context context{graph_, rule, program_, convolutions, *products, nullptr, nullptr};
    const Finish finish = prepare_norm(context, step_);
    program_.steps = {step_};
    const MemoryPlan plan = plan_memory(program_, 16);
    Operand arena(DType::u8, plan.arena_bytes);
    for (BufferId id = 0; id < operands_.size(); ++id)
      std::memcpy(arena.data() + plan.offsets[id], operands_[id].data(), program_.buffers[id].bytes);
    finish(Arena(arena.data(), plan))();
    for (BufferId id = 0; id < operands_.size(); ++id)
      std::memcpy(operands_[id].data(), arena.data() + plan.offsets[id], program_.buffers[id].bytes);
  }

 private:
  template <typename Contents>
  BufferId add(DType dtype, const Contents& contents, Access access) {
    operands_.emplace_back(dtype, contents);
    const auto elements = static_cast<std::int64_t>(operands_.back().elements());
    const BufferId id = add_buffer(program_, {.dtype = dtype, .dims = {elements}, .persistent = true});
    step_.uses.push_back({id, access});
    return id;
  }

  Graph graph_;
  Program program_;
  Step step_;
  std::deque<Operand> operands_;
};

Values floats(std::uint64_t seed) {
  return normal_values(DType::f32, kChannels, seed);
}
Values halves(std::uint64_t seed) {
  return normal_values(kHalf, kElements, seed);
}
Values bits_as_values(const Values& values) {
  const std::vector<std::uint8_t> bits = bits_of_positive(values);
  return {bits.begin(), bits.end()};
}

struct StatisticsUses {
  BufferId running_mean, running_variance, factors, mean, inverse_deviation;
};
// What follows the input, or the sums.
StatisticsUses add_statistics(NormStep& step) {
  step.read(DType::f32, floats(1));  // scale
  step.read(DType::f32, floats(2));  // bias
  StatisticsUses uses{};
  uses.running_mean = step.update(DType::f32, Values(kChannels, 1.0));
  uses.running_variance = step.update(DType::f32, Values(kChannels, 2.0));
  uses.factors = step.write(DType::f32, 2 * kChannels);
  uses.mean = step.write(DType::f32, kChannels);
  uses.inverse_deviation = step.write(DType::f32, kChannels);
  return uses;
}

void expect_statistics(const NormStep& step, const StatisticsUses& uses, const NormMoments& wanted) {
  expect_close(step.values(uses.mean), wanted.mean, DType::f32, 16);
  expect_close(step.values(uses.inverse_deviation), wanted.inverse_deviation, DType::f32, 32);
  Values mean, variance, factors(2 * kChannels);
  for (std::size_t c = 0; c < kChannels; ++c) {
    mean.push_back(0.75 * 1 + 0.25 * wanted.mean[c]);
    variance.push_back(0.75 * 2 + 0.25 * wanted.variance[c] * kPixels / (kPixels - 1.0));
    factors[c] = floats(1)[c] * wanted.inverse_deviation[c];
    factors[kChannels + c] = floats(2)[c] - wanted.mean[c] * factors[c];
  }
  expect_close(step.values(uses.running_mean), mean, DType::f32, 16);
  expect_close(step.values(uses.running_variance), variance, DType::f32, 32);
  expect_close(step.values(uses.factors), factors, DType::f32, 64, largest(factors));
}

TEST(NormSteps, StatisticsAreOfTheInput) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3);
  NormStep step(StepKind::norm_statistics, Activation::relu);
  step.read(kHalf, in);
  const StatisticsUses uses = add_statistics(step);
  step.run();
  expect_statistics(step, uses, norm_moments(in, kChannels));
  EXPECT_EQ(step.workspace_bytes(), norm_workspace_bytes(kPixels, kChannels));
}

TEST(NormSteps, FinalizeTakesSumsInPlaceOfTheInput) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3);
  Values sums(2 * kChannels);
  for (std::size_t i = 0; i < kElements; ++i) {
    sums[i % kChannels] += in[i];
    sums[kChannels + i % kChannels] += in[i] * in[i];
  }
  NormStep step(StepKind::norm_finalize, Activation::relu);
  step.read(DType::f32, sums);
  const StatisticsUses uses = add_statistics(step);
  step.run();
  expect_statistics(step, uses, norm_moments(in, kChannels));
}

// factors[0] * values + factors[1].
Values on_line(const Values& values, const Values& factors) {
  Values line(kElements);
  for (std::size_t i = 0; i < kElements; ++i)
    line[i] = factors[i % kChannels] * values[i] + factors[kChannels + i % kChannels];
  return line;
}

TEST(NormSteps, ApplyAddsTheResidualAndKeepsTheMask) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3), residual = halves(4);
  const Values factors = normal_values(DType::f32, 2 * kChannels, 9);
  const Values of_residual = normal_values(DType::f32, 2 * kChannels, 10);
  enum class Residual { none, stored, raw };
  for (const Residual which : {Residual::none, Residual::stored, Residual::raw}) {
    NormStep apply(StepKind::norm_apply, Activation::relu);
    apply.read(kHalf, in);
    apply.read(DType::f32, factors);
    const BufferId out = apply.write(kHalf, kElements), mask = apply.write(DType::u8, kElements / 8);
    if (which != Residual::none) apply.read(kHalf, residual);
    if (which == Residual::raw) apply.read(DType::f32, of_residual);
    apply.run();
    Values wanted = on_line(in, factors);
    if (which == Residual::stored) wanted = sum(wanted, residual);
    if (which == Residual::raw) wanted = sum(wanted, on_line(residual, of_residual));
    expect_close(apply.values(out), relu(wanted), kHalf, 1.1, 0.1);
    EXPECT_EQ(apply.values(mask), bits_as_values(apply.values(out)));
  }
}

TEST(NormSteps, ApplyWithoutReLULetsAllThrough) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3);
  const Values factors = normal_values(DType::f32, 2 * kChannels, 9);
  NormStep apply(StepKind::norm_apply, Activation::none);
  apply.read(kHalf, in);
  apply.read(DType::f32, factors);
  const BufferId out = apply.write(kHalf, kElements);
  apply.run();
  expect_close(apply.values(out), on_line(in, factors), kHalf, 1.1, 0.1);
}

// The operands of norm_backward that are always there.
struct BackwardUses {
  BufferId d_in, d_scale, d_bias;
};
// d_in_there: what d_in is added to, if anything.
BackwardUses add_backward(NormStep& step, const Values& in, const NormMoments& moments,
                          const Values& d_in_there = {}) {
  step.read(kHalf, in);
  step.read(kHalf, halves(5));       // d_out
  step.read(DType::f32, floats(1));  // scale
  step.read(DType::f32, floats(2));  // bias
  step.read(DType::f32, moments.mean);
  step.read(DType::f32, moments.inverse_deviation);
  BackwardUses uses{};
  uses.d_in = d_in_there.empty() ? step.write(kHalf, kElements) : step.update(kHalf, d_in_there);
  uses.d_scale = step.write(DType::f32, kChannels);
  uses.d_bias = step.write(DType::f32, kChannels);
  return uses;
}
void expect_gradients(const NormStep& step, const BackwardUses& uses, const Values& in,
                      const Values& gradient, double units = 1.1) {
  const NormGradients wanted = norm_gradients(in, gradient, norm_moments(in, kChannels), floats(1));
  expect_close(step.values(uses.d_bias), wanted.d_bias, DType::f32, 4, wanted.largest_sum);
  expect_close(step.values(uses.d_scale), wanted.d_scale, DType::f32, 16, wanted.largest_sum);
  expect_close(step.values(uses.d_in), wanted.d_in, kHalf, units);
}

TEST(NormSteps, BackwardWithoutReLUTakesOneOrTwoGradients) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3);
  for (const bool two : {false, true}) {
    NormStep step(StepKind::norm_backward, Activation::none);
    const BackwardUses uses = add_backward(step, in, norm_moments(in, kChannels));
    if (two) step.read(kHalf, halves(6));
    step.run();
    expect_gradients(step, uses, in, two ? sum(halves(5), halves(6)) : halves(5));
  }
}

TEST(NormSteps, BackwardReadsBitsOrTheOutputAsMask) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3), out = relu(halves(7));
  for (const bool bits : {false, true}) {
    NormStep step(StepKind::norm_backward, Activation::relu);
    const BackwardUses uses = add_backward(step, in, norm_moments(in, kChannels));
    if (bits)
      step.read(DType::u8, bits_as_values(out));
    else
      step.read(kHalf, out);
    step.run();
    expect_gradients(step, uses, in, where(out, halves(5)));
  }
}

TEST(NormSteps, BackwardReadsTheFactorsAsMask) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3);
  const Values factors = normal_values(kHalf, 2 * kChannels, 9);
  NormStep step(StepKind::norm_backward, Activation::relu);
  const BackwardUses uses = add_backward(step, in, norm_moments(in, kChannels));
  step.read(kHalf, factors);
  step.run();
  expect_gradients(step, uses, in, where(relu(on_line(in, factors)), halves(5)));
}

TEST(NormSteps, BackwardGivesTheResidualItsGradient) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3), out = relu(halves(7));
  for (const bool bits : {false, true}) {
    NormStep step(StepKind::norm_backward, Activation::relu);
    const BackwardUses uses = add_backward(step, in, norm_moments(in, kChannels));
    if (bits)
      step.read(DType::u8, bits_as_values(out));
    else
      step.read(kHalf, out);
    step.read(kHalf, halves(6));  // second d_out
    const BufferId d_residual = step.write(kHalf, kElements);
    step.run();
    const Values gradient = where(out, sum(halves(5), halves(6)));
    expect_close(step.values(d_residual), gradient, kHalf, 1.01, 0.1);
    expect_gradients(step, uses, in, gradient, 6);  // d_residual is rounded in between
  }
}

TEST(NormSteps, BackwardApplyUsesTheCoefficientsOfAConvolution) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3), d_activated = halves(5);
  const Values coefficients = normal_values(DType::f32, 3 * kChannels, 8);
  NormStep step(StepKind::norm_backward_apply, Activation::relu);
  step.read(kHalf, d_activated);
  step.read(kHalf, in);
  step.read(DType::f32, coefficients);
  const BufferId d_in = step.write(kHalf, kElements);
  step.run();
  Values wanted(kElements);
  for (std::size_t i = 0; i < kElements; ++i) {
    const double* c = &coefficients[i % kChannels];
    wanted[i] = c[0] * d_activated[i] + c[kChannels] * in[i] + c[2 * kChannels];
  }
  expect_close(step.values(d_in), wanted, kHalf, 1.1, 0.1);
}

// The slopes of a PReLU: of each channel, or one for all.
const std::size_t kSlopes[] = {kChannels, 1};
double slope_at(const Values& slopes, std::size_t i) {
  return slopes[slopes.size() > 1 ? i % kChannels : 0];
}

TEST(NormSteps, ApplyTakesThePReLUsSlopeFromTheLastUse) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3);
  const Values factors = normal_values(DType::f32, 2 * kChannels, 9);
  for (const std::size_t count : kSlopes) {
    const Values slopes = normal_values(DType::f32, count, 12);
    NormStep apply(StepKind::norm_apply, Activation::prelu);
    apply.read(kHalf, in);
    apply.read(DType::f32, factors);
    const BufferId out = apply.write(kHalf, kElements);
    apply.read(DType::f32, slopes);
    apply.run();
    Values wanted = on_line(in, factors);
    for (std::size_t i = 0; i < kElements; ++i) wanted[i] *= wanted[i] > 0 ? 1 : slope_at(slopes, i);
    expect_close(apply.values(out), wanted, kHalf, 1.1, 0.1);
  }
}

TEST(NormSteps, BackwardThroughAPReLUEndsWithTheSlopeAndItsGradient) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3);
  const Values factors = normal_values(DType::f32, 2 * kChannels, 9), line = on_line(in, factors);
  for (const std::size_t count : kSlopes) {
    const Values slopes = normal_values(DType::f32, count, 12);
    NormStep step(StepKind::norm_backward, Activation::prelu);
    const BackwardUses uses = add_backward(step, in, norm_moments(in, kChannels));
    step.read(DType::f32, factors);
    step.read(DType::f32, slopes);
    const BufferId d_slope = step.write(DType::f32, count);
    step.run();
    Values gradient = halves(5), wanted(count), magnitudes(count);
    for (std::size_t i = 0; i < kElements; ++i) {
      if (line[i] > 0) continue;
      wanted[count > 1 ? i % kChannels : 0] += gradient[i] * line[i];
      magnitudes[count > 1 ? i % kChannels : 0] += std::abs(gradient[i] * line[i]);
      gradient[i] *= slope_at(slopes, i);
    }
    expect_gradients(step, uses, in, gradient);
    expect_close(step.values(d_slope), wanted, DType::f32, 8, largest(magnitudes));
    EXPECT_EQ(step.workspace_bytes(), norm_workspace_bytes(kPixels, kChannels, kPreluSums));
  }
}

TEST(NormSteps, BackwardWithoutReLUGivesTheResidualTheSumOfTwoGradients) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3);
  NormStep step(StepKind::norm_backward, Activation::none);
  const BackwardUses uses = add_backward(step, in, norm_moments(in, kChannels));
  step.read(kHalf, halves(6));  // second d_out
  const BufferId d_residual = step.write(kHalf, kElements);
  step.run();
  const Values gradient = sum(halves(5), halves(6));
  expect_close(step.values(d_residual), gradient, kHalf, 1.01, 0.1);
  expect_gradients(step, uses, in, gradient, 6);
}

TEST(NormSteps, BackwardAddsToAGradientThatItReadsToo) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3), there = halves(8);
  const NormMoments moments = norm_moments(in, kChannels);
  NormStep plain(StepKind::norm_backward, Activation::none),
      adding(StepKind::norm_backward, Activation::none);
  const BackwardUses alone = add_backward(plain, in, moments),
                     onto = add_backward(adding, in, moments, there);
  plain.run();
  adding.run();
  expect_close(adding.values(onto.d_in), sum(plain.values(alone.d_in), there), kHalf, 2.1);
  EXPECT_EQ(adding.values(onto.d_scale), plain.values(alone.d_scale));
}

}  // namespace
}  // namespace plumb::cuda
