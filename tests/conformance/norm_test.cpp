// Batch norms of chosen sizes, with every operand that the instructions may have.
#include <cmath>

#include "tests/conformance/device_under_test.h"
#include "tests/conformance/norm_tensors.h"

namespace plumb {
namespace {

class Norms : public Conformance {
 protected:
  // On a GPU: one pixel, fewer than a block has rows, one and a bit of several blocks, more than one block
  // combines at once; a group of 8 channels, three of them, several, more than one tile.
  static std::vector<Shape> extents() {
    if (!on_gpu())
      return {{1, 1, 1, 17},   {2, 5, 5, 3},   {3, 9, 7, 24},   {40, 7, 7, 64},
              {2, 1, 1, 2048}, {3, 4, 40, 37}, {5, 30, 30, 16}, {1, 90, 100, 1}};
    return {{1, 1, 1, 8},     {1, 1, 1, 72},   {7, 1, 1, 24},    {7, 1, 1, 2048},  {3, 19, 9, 8},
            {3, 19, 9, 24},   {3, 19, 9, 72},  {1, 1, 1569, 16}, {1569, 1, 1, 64}, {2, 5, 13, 264},
            {130, 2, 2, 512}, {2, 7, 7, 2048}, {11, 10, 10, 264}};
  }
  static void for_each(const std::function<void(NormTensors&)>& check) {
    for (const DType dtype : storages())
      for (const Shape& extent : extents()) {
        SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << extent.n << " x " << extent.h << " x "
                                        << extent.w << " x " << extent.c);
        NormTensors norm(*device(), extent, dtype);
        check(norm);
      }
  }
};
using GpuNorms = Norms;  // instructions of GPUs, or shapes for their kernels

TEST_F(Norms, Forward) {
  for_each([](NormTensors& norm) {
    using enum Activation;
    if (!on_gpu()) {
      const auto add = [&](Activation activation, bool residual, std::optional<Read> slope = {}) {
        const BatchNormMoments at = norm.moments();
        BatchNormForward forward{.in = norm.in(),
                                 .scale = at.scale,
                                 .bias = at.bias,
                                 .running_mean = at.running_mean,
                                 .running_variance = at.running_variance,
                                 .out = norm.unwritten_tensor(),
                                 .mean = *at.mean,
                                 .inv_std = at.inv_std,
                                 .slope = slope};
        if (residual) forward.residual = norm.tensor(6);
        norm.add(forward, activation);
      };
      for (const Activation activation : {none, relu})
        for (const bool residual : {false, true}) add(activation, residual);
      add(prelu, false, norm.program().tensors.parameters[2].master);
      return norm.check();
    }
    const BatchNormStatistics statistics{
        .in = norm.in(), .moments = norm.moments(), .counters = norm.counters()};
    norm.add(statistics, none);
    const auto add = [&](Activation activation, BatchNormApply apply) { norm.add(apply, activation); };
    const BufferId line = norm.channels(7, 0, 2), residual_line = norm.channels(8, 0, 2),
                   residual = norm.tensor(6);
    for (const Activation activation : {none, relu})
      for (const bool keeps_mask : {false, true}) {
        if (keeps_mask && activation == none) continue;
        BatchNormApply apply{.in = norm.in(), .out = norm.unwritten_tensor(), .scale_shift = line};
        if (keeps_mask) apply.relu_mask = norm.unwritten_mask();
        add(activation, apply);
        apply.residual = residual;
        add(activation, apply);
        apply.residual_scale_shift = residual_line;
        add(activation, apply);
      }
    for (const bool per_channel : {true, false})
      add(prelu, {.in = norm.in(),
                  .out = norm.unwritten_tensor(),
                  .scale_shift = line,
                  .slope = norm.slopes(per_channel)});
    norm.check(2);
  });
}

TEST_F(GpuNorms, SumTheirOutput) {
  for_each([](NormTensors& norm) {
    BatchNormApply apply{
        .in = norm.in(), .out = norm.unwritten_tensor(), .scale_shift = norm.channels(7, 0, 2)};
    for (const Activation activation : {Activation::none, Activation::relu}) {
      apply.out_sums = norm.unwritten_channels();
      apply.counters = norm.counters();
      norm.add(apply, activation);
    }
    norm.check(2);
  });
}

// Sums [2, c] as a convolution gathers them.
BufferId gathered_sums(NormTensors& norm) {
  const auto elements = static_cast<double>(norm.extent().elements() / norm.extent().c);
  Doubles sums, squares;
  for (std::int64_t c = 0; c < norm.extent().c; ++c) {
    sums.push_back(elements * (0.25 * static_cast<double>(c % 5) - 0.5));
    squares.push_back(elements * (1 + 0.25 * static_cast<double>(c % 3)) +
                      sums.back() * sums.back() / elements);
  }
  sums.insert(sums.end(), squares.begin(), squares.end());
  const BufferId given = norm.unwritten_channels(2);
  norm.write(given, sums);
  return given;
}

// The line as f16 where a convolution reads it.
TEST_F(GpuNorms, FromSumsThatAConvolutionGathered) {
  for (const DType line : {DType::f32, DType::f16})
    for (const std::int64_t channels : {8, 72, 304}) {
      NormTensors norm(*device(), {3, 19, 9, channels}, DType::f16);
      norm.add(BatchNormFinalize{.sums = gathered_sums(norm), .moments = norm.moments(line)},
               Activation::none);
      norm.check();
    }
}

// In one instruction, and to the bit as in two.
TEST_F(GpuNorms, NormaliseFromSumsThatAConvolutionGathered) {
  for_each([](NormTensors& norm) {
    if (norm.dtype() == DType::f32) return;
    const BufferId sums = gathered_sums(norm);
    const BatchNormFinalize apart{.sums = sums, .moments = norm.moments()};
    norm.add(apart, Activation::none);
    std::vector<std::pair<BufferId, BufferId>> equal;
    const auto add = [&](Activation activation, const std::function<void(BatchNormApply&)>& set) {
      BatchNormApply second{
          .in = norm.in(), .out = norm.unwritten_tensor(), .scale_shift = apart.moments.scale_shift.buffer};
      set(second);
      norm.add(second, activation);
      BatchNormApply both{.in = norm.in(),
                          .out = norm.unwritten_tensor(),
                          .finalize = BatchNormFinalize{.sums = sums, .moments = norm.moments()}};
      set(both);
      norm.add(both, activation);
      const BatchNormMoments& made = both.finalize->moments;
      equal.insert(equal.end(), {{second.out, both.out},
                                 {apart.moments.scale_shift, made.scale_shift},
                                 {*apart.moments.mean, *made.mean},
                                 {apart.moments.inv_std, made.inv_std}});
      if (second.out_sums) equal.emplace_back(*second.out_sums, *both.out_sums);
    };
    const BufferId residual = norm.tensor(6), slopes = norm.slopes(true);
    add(Activation::relu, [&](BatchNormApply& apply) { apply.residual = residual; });
    add(Activation::prelu, [&](BatchNormApply& apply) { apply.slope = slopes; });
    add(Activation::relu, [&](BatchNormApply& apply) {
      apply.out_sums = norm.unwritten_channels();
      apply.counters = norm.counters();
    });
    norm.check(2);
    const auto program = norm.start();
    for (InstructionId id = 0; id < program->program().instructions.size(); ++id) program->run(id);
    for (const auto& [in_two, in_one] : equal) EXPECT_EQ(program->held(in_two), program->held(in_one));
  });
}

// The second moment is a million times the variance: in f32 nothing is left of their difference.
TEST_F(Norms, KeepASmallVarianceNextToALargeMean) {
  for (const Shape& extent : {Shape{50, 10, 10, 16}, {100, 7, 7, 72}, {2, 56, 56, 8}}) {
    NormTensors norm(*device(), extent, DType::f32);
    Doubles values = normal_values(DType::f32, static_cast<std::size_t>(extent.elements()), 2);
    for (double& value : values) value = 100 + 0.1 * value;
    values[0] = 0;  // neither does the first element help to guess the mean
    norm.write(norm.in(), values);
    const BatchNormMoments at = norm.moments();
    if (on_gpu())
      norm.add(BatchNormStatistics{.in = norm.in(), .moments = at, .counters = norm.counters()},
               Activation::none);
    else
      norm.add(BatchNormForward{.in = norm.in(),
                                .scale = at.scale,
                                .bias = at.bias,
                                .running_mean = at.running_mean,
                                .running_variance = at.running_variance,
                                .out = norm.unwritten_tensor(),
                                .mean = *at.mean,
                                .inv_std = at.inv_std},
               Activation::none);
    const auto program = norm.start();
    program->run(0);
    const Doubles& in = program->held(norm.in());
    const auto plane = static_cast<std::size_t>(extent.h * extent.w),
               channels = static_cast<std::size_t>(extent.c);
    const auto elements = static_cast<double>(in.size()) / static_cast<double>(channels);
    for (std::size_t c = 0; c < channels; ++c) {
      double mean = 0, variance = 0;
      for (std::size_t i = 0; i < in.size(); ++i)
        if (i / plane % channels == c) mean += in[i] / elements;
      for (std::size_t i = 0; i < in.size(); ++i)
        if (i / plane % channels == c) variance += (in[i] - mean) * (in[i] - mean) / elements;
      const double inv_std = program->held(at.inv_std)[c];
      EXPECT_NEAR((1 / (inv_std * inv_std) - 1e-5) / variance, 1, 1e-3) << "channel " << c;
    }
  }
}

TEST_F(GpuNorms, LetANotANumberThrough) {
  NormTensors norm(*device(), {2, 1, 1, 8}, DType::f32);
  Doubles values(16, 1.0);
  values[1] = std::nan("");
  norm.write(norm.in(), values);
  const BufferId line = norm.unwritten_channels(2), out = norm.unwritten_tensor(),
                 mask = norm.unwritten_mask();
  norm.write(line, Doubles(16, -1.0));
  norm.add(BatchNormApply{.in = norm.in(), .out = out, .scale_shift = line, .relu_mask = mask},
           Activation::relu);
  const auto program = norm.start();
  program->run(0);
  EXPECT_TRUE(std::isnan(program->held(out)[1]));
  EXPECT_EQ(program->held(out)[2], 0);
  EXPECT_EQ(program->held(mask)[0], 2);
}

TEST_F(Norms, Backward) {
  for_each([](NormTensors& norm) {
    using enum Activation;
    const BufferId mean = norm.channels(21, 1), inv_std = norm.channels(22, 3), d_out = norm.tensor(23),
                   second = norm.tensor(24), out = norm.tensor(25);
    const auto backward = [&](BufferId d_in, bool adds = false) {
      BatchNormBackward norm_backward{.in = norm.in(),
                                      .d_out = d_out,
                                      .scale = norm.scale(),
                                      .bias = norm.bias(),
                                      .mean = mean,
                                      .inv_std = inv_std,
                                      .d_in = WriteOrAdd(d_in, adds),
                                      .d_scale = norm.unwritten_channels(),
                                      .d_bias = norm.unwritten_channels()};
      if (on_gpu()) norm_backward.counters = norm.counters();
      return norm_backward;
    };
    const auto add = [&](Activation activation, const std::function<void(BatchNormBackward&)>& set) {
      BatchNormBackward plain = backward(norm.unwritten_tensor());
      set(plain);
      norm.add(plain, activation);
    };
    add(none, [](BatchNormBackward&) {});
    add(none, [&](BatchNormBackward& at) { at.second_d_out = second; });
    add(none,
        [&](BatchNormBackward& at) { at.second_d_out = second, at.d_residual = norm.unwritten_tensor(); });
    if (!on_gpu()) {
      add(relu, [&](BatchNormBackward& at) { at.out = out, at.d_residual = norm.unwritten_tensor(); });
      add(relu, [&](BatchNormBackward& at) {
        at.out = out, at.second_d_out = second, at.d_residual = norm.unwritten_tensor();
      });
      add(relu, [](BatchNormBackward&) {});
      add(prelu, [&](BatchNormBackward& at) {
        at.slope = norm.program().tensors.parameters[2].master, at.d_slope = norm.unwritten_channels();
      });
      return norm.check();
    }
    const BufferId line = norm.channels(26, 0, 2);
    add(relu, [&](BatchNormBackward& at) { at.scale_shift = line; });
    if (norm.dtype() == DType::f16) {
      const BufferId half = norm.channels(26, 0, 2, DType::f16);
      add(relu, [&](BatchNormBackward& at) { at.scale_shift = half; });
    }
    const BufferId mask = norm.mask();
    for (const bool two : {false, true})
      add(relu, [&](BatchNormBackward& at) {
        at.relu_mask = mask, at.d_residual = norm.unwritten_tensor();
        if (two) at.second_d_out = second;
      });
    for (const bool per_channel : {true, false})
      add(prelu, [&](BatchNormBackward& at) {
        at.scale_shift = line;
        at.slope = norm.slopes(per_channel);
        at.d_slope = norm.slopes(per_channel);
      });
    norm.add(backward(norm.tensor(27), true), none);
    norm.check();
  });
}

// A block's end and its shortcut's norm at once, and the second pass alone.
TEST_F(GpuNorms, BackwardOfAPair) {
  for_each([](NormTensors& norm) {
    const BufferId d_out = norm.tensor(23), mask = norm.mask(), second = norm.tensor(24),
                   shortcut_in = norm.tensor(28, true);
    const auto of = [&](BufferId in, std::uint64_t seed) {
      return BatchNormPairBackward::Norm{.in = in,
                                         .scale = norm.channels(seed, 1),
                                         .mean = norm.channels(seed + 1, 1),
                                         .inv_std = norm.channels(seed + 2, 3),
                                         .d_in = norm.unwritten_tensor(),
                                         .d_scale = norm.unwritten_channels(),
                                         .d_bias = norm.unwritten_channels()};
    };
    for (const bool two : {false, true})
      for (const bool masked : {false, true}) {
        BatchNormPairBackward pair{.norm = of(norm.in(), 31),
                                   .shortcut = of(shortcut_in, 41),
                                   .d_out = d_out,
                                   .counters = norm.counters()};
        if (two) pair.second_d_out = second;
        if (masked) pair.relu_mask = mask;
        norm.add(pair, masked ? Activation::relu : Activation::none);
      }
    BatchNormBackwardApply apply{.d_activated = d_out,
                                 .in = norm.in(),
                                 .coefficients = norm.channels(51, 0, 3),
                                 .d_in = norm.unwritten_tensor()};
    norm.add(apply, Activation::none);
    apply.coefficients = norm.channels(51, 0, 6);
    apply.shortcut_in = shortcut_in;
    apply.d_shortcut_in = norm.unwritten_tensor();
    norm.add(apply, Activation::none);
    norm.check();
  });
}

// On every device, in whatever order threads and blocks run.
TEST_F(Norms, RepeatBitForBit) {
  for (const DType dtype : storages()) {
    NormTensors norm(*device(), {11, 10, 10, 264}, dtype);
    const BufferId d_in = norm.unwritten_tensor(), d_scale = norm.unwritten_channels();
    BatchNormBackward backward{.in = norm.in(),
                               .d_out = norm.tensor(23),
                               .scale = norm.scale(),
                               .bias = norm.bias(),
                               .mean = norm.channels(21, 1),
                               .inv_std = norm.channels(22, 3),
                               .d_in = WriteOrAdd(d_in),
                               .d_scale = d_scale,
                               .d_bias = norm.unwritten_channels()};
    if (on_gpu()) backward.counters = norm.counters();
    norm.add(backward, Activation::none);
    const auto program = norm.start();
    program->run(0);
    const Doubles first = program->held(d_in), sums = program->held(d_scale);
    for (int i = 0; i < 3; ++i) {
      program->run(0);
      EXPECT_EQ(program->held(d_in), first);
      EXPECT_EQ(program->held(d_scale), sums);
    }
  }
}

}  // namespace
}  // namespace plumb
