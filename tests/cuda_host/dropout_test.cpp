// Dropout on the emulated GPU: the elements that models/dropout.h says, and no others.
#include "kernels/cuda/dropout.h"

#include <gtest/gtest.h>

#include "tests/cuda_host/bound_instruction.h"

namespace plumb::cuda {
namespace {

// What is left of `in`, both in NHWC.
std::vector<double> dropped(const Shape& shape, const DropoutRule& rule, const StepState& step,
                            const std::vector<double>& in) {
  std::vector<double> out(in.size());
  const std::int64_t pixels = shape.h * shape.w;
  for (std::int64_t n = 0; n < shape.n; ++n)
    for (std::int64_t c = 0; c < shape.c; ++c)
      for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
        const auto element = static_cast<std::uint32_t>(c * pixels + pixel);
        const PhiloxBlock bits = dropout_bits(rule.key, step.iteration,
                                              step.first_sample + static_cast<std::uint64_t>(n), element / 4);
        const auto place = static_cast<std::size_t>((n * pixels + pixel) * shape.c + c);
        out[place] =
            bits[element % 4] < rule.threshold ? 0 : in[place] * static_cast<double>(rule.keep_scale);
      }
  return out;
}

// A vector, channels that no tile divides, runs of pixels that begin anywhere in a random block, several
// tiles of both kinds.
const Shape kShapes[] = {{.n = 3, .h = 1, .w = 1, .c = 8},    {.n = 2, .h = 1, .w = 1, .c = 512},
                         {.n = 2, .h = 7, .w = 7, .c = 72},   {.n = 2, .h = 3, .w = 1, .c = 24},
                         {.n = 1, .h = 9, .w = 15, .c = 136}, {.n = 1, .h = 16, .w = 8, .c = 8}};
constexpr StepState kStep{.iteration = 0x100000005, .first_sample = 0xFFFFFFFF};

TEST(Dropout, DropsTheSameElementsInEveryLayoutAndType) {
  const DropoutRule rule = dropout_rule(3, "dropout", 0.4);
  for (const Shape& shape : kShapes) {
    for (DType dtype : kStorageTypes) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << " c=" << shape.c);
      const auto count = static_cast<std::size_t>(shape.elements());
      const std::vector<double> values = normal_values(dtype, count, 5);
      GuardedTensor in(dtype, values), out(dtype, count);
      const State state{.step = kStep};
      launch_dropout({in.data(), out.data(), dtype, shape}, rule, &state, nullptr);
      const std::vector<double> wanted = dropped(shape, rule, kStep, values);
      expect_close(out.values(), wanted, dtype, 1.01, 0.01);
    }
  }
}

TEST(Dropout, TakesKeyScaleAndLayoutFromItsLayerBothWays) {
  const Shape shape{.n = 2, .h = 2, .w = 3, .c = 16};
  Graph graph;
  graph.values = {{"in", shape}, {"out", shape}};
  graph.ops = {plumb::Dropout{.name = "drop", .in = 0, .out = 1, .probability = 0.25, .seed = 11}};
  for (const bool is_nchw : {false, true}) {
    const DType dtype = is_nchw ? DType::f32 : DType::f16;
    const auto held = [&](const std::vector<double>& values) {
      return is_nchw ? transposed(values, static_cast<std::size_t>(shape.h * shape.w),
                                  static_cast<std::size_t>(shape.c))
                     : values;
    };
    const std::vector<double> values = normal_values(dtype, static_cast<std::size_t>(shape.elements()), 6);
    for (const bool forward : {true, false}) {
      BoundInstruction bound(graph);
      bound.set_layout(is_nchw ? TensorLayout::nchw : TensorLayout::nhwc);
      const BufferId in = bound.add(dtype, held(values)), out = bound.add(dtype, values.size());
      const BufferId state = bound.add_object(State{.step = kStep});
      if (forward)
        bound.run(DropoutForward{.in = in, .state = state, .out = out});
      else
        bound.run(DropoutBackward{.d_out = in, .state = state, .d_in = out});
      const std::vector<double> wanted = dropped(shape, dropout_rule(11, "drop", 0.25), kStep, values);
      expect_close(bound.values(out), held(wanted), dtype, 1.01, 0.01);
    }
  }
}

TEST(Dropout, KeepsEverythingAtProbabilityZero) {
  const Shape shape{.n = 1, .h = 4, .w = 5, .c = 16};
  const std::vector<double> values = normal_values(DType::f32, static_cast<std::size_t>(shape.elements()), 7);
  GuardedTensor in(DType::f32, values), out(DType::f32, values.size());
  const State state{.step = kStep};
  launch_dropout({in.data(), out.data(), DType::f32, shape}, dropout_rule(1, "drop", 0), &state, nullptr);
  EXPECT_EQ(out.values(), values);
}

}  // namespace
}  // namespace plumb::cuda
