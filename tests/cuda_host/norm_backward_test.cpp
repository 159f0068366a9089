// The backward passes of batch norm on the emulated GPU, one by one, against loops in double.
#include <gtest/gtest.h>

#include <initializer_list>

#include "kernels/cuda/norm.h"
#include "tests/cuda_host/guarded_tensor.h"
#include "tests/cuda_host/norm_reference.h"

namespace plumb::cuda {
namespace {

// Which operands the gradient of the output has.
enum class Passed { all, bits, activated, scale_shift };
struct BackwardCase {
  Passed passed = Passed::all;
  bool second = false, residual = false;
  bool pair = false;  // with the norm of a shortcut
};

// Everything that backward makes, in one run of its two passes.
struct OfNorm {
  Values d_in, d_scale, d_bias;
};
struct BackwardRun : OfNorm {
  Values d_residual;
  OfNorm shortcut;
};

struct NormInputs {
  NormInputs(DType dtype, const NormSize& size, std::uint64_t seed_of_x, std::uint64_t seed_of_scale)
      : x(norm_inputs(dtype, size.pixels, size.channels, seed_of_x)),
        scale(normal_values(DType::f32, size.channels, seed_of_scale)),
        moments(norm_moments(x, size.channels)) {
    moments.mean = rounded(DType::f32, moments.mean);
    moments.inv_std = rounded(DType::f32, moments.inv_std);
  }
  Values x, scale;
  NormMoments moments;
};

struct BackwardInputs : NormInputs {
  BackwardInputs(DType dtype, const NormSize& size)
      : NormInputs(dtype, size, 21, 25),
        shortcut(dtype, size, 27, 28),
        d_out(normal_values(dtype, size.elements(), 22)),
        second(normal_values(dtype, size.elements(), 23)),
        activated(relu(normal_values(dtype, size.elements(), 24))),
        scale_shift_dtype(dtype == DType::f16 ? DType::f16 : DType::f32),
        scale_shift(normal_values(scale_shift_dtype, 2 * size.channels, 26)) {}
  Values gradient(const BackwardCase& which) const {
    const Values both = which.second ? sum(d_out, second) : d_out;
    if (which.passed == Passed::all) return both;
    return where(which.passed == Passed::scale_shift ? on_line() : activated, both);
  }
  Values on_line() const {
    Values line(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t c = i % scale.size();
      line[i] = scale_shift[c] * x[i] + scale_shift[scale.size() + c];
    }
    return relu(line);
  }
  NormInputs shortcut;
  Values d_out, second, activated;
  DType scale_shift_dtype;
  Values scale_shift;
};

// A norm's tensors on the GPU; `coefficients`: f32 [3, channels] at least.
struct BackwardTensors {
  BackwardTensors(DType dtype, const NormSize& extent, const NormInputs& inputs)
      : size(extent),
        x(dtype, size.held(inputs.x)),
        scale(DType::f32, inputs.scale),
        mean(DType::f32, inputs.moments.mean),
        inv_std(DType::f32, inputs.moments.inv_std),
        d_scale(DType::f32, size.channels),
        d_bias(DType::f32, size.channels),
        d_in(dtype, size.elements()) {}
  NormBackward operands(float* coefficients) {
    return {.scale = scale.as<float>(),
            .mean = mean.as<float>(),
            .inv_std = inv_std.as<float>(),
            .d_scale = d_scale.as<float>(),
            .d_bias = d_bias.as<float>(),
            .coefficients = coefficients};
  }
  OfNorm read() const { return {size.read(d_in.values()), d_scale.values(), d_bias.values()}; }

  NormSize size;
  GuardedTensor x, scale, mean, inv_std, d_scale, d_bias, d_in;
};

BackwardRun run_backward(DType dtype, const NormSize& size, const BackwardInputs& inputs,
                         const BackwardCase& which) {
  const std::vector<std::uint8_t> bits = bits_of_positive(inputs.activated);
  BackwardTensors norm(dtype, size, inputs), shortcut(dtype, size, inputs.shortcut);
  GuardedTensor d_out(dtype, size.held(inputs.d_out)), second(dtype, size.held(inputs.second)),
      activated(dtype, size.held(inputs.activated)),
      scale_shift(inputs.scale_shift_dtype, inputs.scale_shift),
      mask(DType::u8, Values(bits.begin(), bits.end())),
      coefficients(DType::f32, (which.pair ? 6 : 3) * size.channels), d_residual(dtype, size.elements());
  const NormPartition partition = size.partition();
  NormGradient gradient{.in = norm.x.data(), .d_out = d_out.data()};
  if (which.pair) gradient.shortcut_in = shortcut.x.data();
  if (which.second) gradient.second_d_out = second.data();
  if (which.passed == Passed::bits) gradient.mask = mask.as<std::uint8_t>();
  if (which.passed == Passed::activated) gradient.activated = activated.data();
  if (which.passed == Passed::scale_shift)
    gradient.scale_shift = scale_shift.data(), gradient.scale_shift_dtype = scale_shift.dtype();
  NormMeeting meeting(partition, which.pair ? kMostNormSums : kNormSums);
  launch_norm_backward_sums(
      partition, dtype, gradient, which.residual ? d_residual.data() : nullptr, meeting.scratch(),
      norm.operands(coefficients.as<float>()),
      which.pair ? shortcut.operands(coefficients.as<float>() + 3 * size.channels) : NormBackward{}, nullptr);
  if (which.residual)
    gradient = {.in = gradient.in, .d_out = d_residual.data(), .shortcut_in = gradient.shortcut_in};
  launch_norm_backward_apply(
      partition, dtype, gradient, coefficients.as<float>(),
      {.data = norm.d_in.data(), .shortcut = which.pair ? shortcut.d_in.data() : nullptr}, nullptr);
  return {norm.read(), size.read(d_residual.values()), which.pair ? shortcut.read() : OfNorm{}};
}

void expect_norm(DType dtype, const OfNorm& made, const NormInputs& inputs, const Values& gradient,
                 bool rounded_between) {
  const NormGradients wanted = norm_gradients(inputs.x, gradient, inputs.moments, inputs.scale);
  expect_close(made.d_bias, wanted.d_bias, DType::f32, 4, wanted.largest_sum);
  expect_close(made.d_scale, wanted.d_scale, DType::f32, 16, wanted.largest_sum);
  const double magnitude = largest(inputs.scale) * largest(inputs.moments.inv_std) * largest(gradient);
  const double units = dtype == DType::f32 ? 32 : rounded_between ? 2 : 1;
  expect_close(made.d_in, wanted.d_in, dtype, units, magnitude / (dtype == DType::f32 ? 1 : 4));
}

void check_backward(DType dtype, const NormSize& size, std::initializer_list<BackwardCase> cases) {
  const BackwardInputs inputs(dtype, size);
  for (const BackwardCase& which : cases) {
    const Values gradient = inputs.gradient(which);
    const BackwardRun made = run_backward(dtype, size, inputs, which);
    expect_norm(dtype, made, inputs, gradient, which.residual);
    if (which.pair) expect_norm(dtype, made.shortcut, inputs.shortcut, gradient, which.residual);
    if (which.residual) expect_close(made.d_residual, gradient, dtype, 1.01, 0.1);
  }
}

TEST(NormBackward, FollowsTheFormulaWithoutAReLU) {
  for_all_norm_sizes(
      [](DType dtype, const NormSize& size) { check_backward(dtype, size, {BackwardCase{}}); });
}

// What forward keeps of a ReLU behind a residual: bits, in NCHW the output.
Passed kept(const NormSize& size) {
  return size.plane == 1 ? Passed::bits : Passed::activated;
}

TEST(NormBackward, TakesWhatPassedTheReLUFromBits) {
  for_all_norm_sizes([](DType dtype, const NormSize& size) {
    check_backward(dtype, size, {{.passed = kept(size)}, {.passed = kept(size), .second = true}});
  });
}

TEST(NormBackward, TakesWhatPassedTheReLUFromTheStoredOutput) {
  for_all_norm_sizes([](DType dtype, const NormSize& size) {
    check_backward(
        dtype, size,
        {{.passed = Passed::activated}, {.passed = Passed::activated, .second = true, .residual = true}});
  });
}

TEST(NormBackward, FindsWhatPassedTheReLUByTheFactorsOfTheNorm) {
  for_all_norm_sizes([](DType dtype, const NormSize& size) {
    check_backward(dtype, size, {{.passed = Passed::scale_shift}});
  });
}

TEST(NormBackward, WritesTheResidualsGradientAndGoesOnFromIt) {
  for_all_norm_sizes([](DType dtype, const NormSize& size) {
    check_backward(
        dtype, size,
        {{.passed = kept(size), .residual = true}, {.passed = kept(size), .second = true, .residual = true}});
  });
}

TEST(NormBackward, TakesTheNormOfAShortcutAlong) {
  for_all_norm_sizes([](DType dtype, const NormSize& size) {
    check_backward(dtype, size,
                   {{.pair = true},
                    {.second = true, .pair = true},
                    {.passed = kept(size), .residual = true, .pair = true},
                    {.passed = kept(size), .second = true, .residual = true, .pair = true}});
  });
}

TEST(NormBackward, RepeatsBitForBitInWhateverOrderThreadsAndBlocksRun) {
  for (const NormSize& size : {kSeveralLevels, NormSize{50 * 49, 24, 49}, kSeveralLevelsOfPlanes}) {
    const DType dtype = size.plane == 1 ? DType::bf16 : DType::f32;
    const BackwardInputs inputs(dtype, size);
    for (const bool pair : {false, true}) {
      const BackwardCase which{.passed = kept(size), .second = true, .residual = true, .pair = pair};
      const BackwardRun first = run_backward(dtype, size, inputs, which);
      for (int i = 0; i < 3; ++i) {
        const BackwardRun again = run_backward(dtype, size, inputs, which);
        EXPECT_EQ(again.d_in, first.d_in);
        EXPECT_EQ(again.d_scale, first.d_scale);
        EXPECT_EQ(again.d_bias, first.d_bias);
        EXPECT_EQ(again.shortcut.d_in, first.shortcut.d_in);
        EXPECT_EQ(again.shortcut.d_scale, first.shortcut.d_scale);
      }
    }
  }
}
}  // namespace
}  // namespace plumb::cuda
