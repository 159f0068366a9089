// Pools of chosen values: few different ones, so that many windows hold equals, and all negative, as padding
// isn't.
#include <cmath>
#include <limits>

#include "tests/conformance/device_under_test.h"
#include "tests/conformance/hand_made.h"

namespace plumb {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

class Pools : public Conformance {
 protected:
  struct Case {
    std::int64_t n, h, w, c;
    int kernel, stride, padding;
  };
  struct Made {
    HandMade program;
    BufferId in, out, d_out, d_in, argmax, line, winners;
  };
  // Forward and backward of one pool. A GPU's max pool is of relu(line), and a norm goes back through it.
  static Made make(const Case& c, DType dtype, Pool::Kind kind) {
    Graph graph;
    const auto outputs = [&](std::int64_t size) {
      return kind == Pool::Kind::max ? (size + 2 * c.padding - c.kernel) / c.stride + 1 : 1;
    };
    const Shape from{c.n, c.h, c.w, c.c}, to{c.n, outputs(c.h), outputs(c.w), c.c};
    graph.values = {{"images", {c.n, 1, 1, 3}}, {"in", from}, {"out", to}};
    graph.ops = {Pool{.name = "pool",
                      .in = 1,
                      .out = 2,
                      .kind = kind,
                      .kernel = c.kernel,
                      .stride = c.stride,
                      .padding = c.padding}};
    HandMade made(std::move(graph));
    const auto tensor = [&](const Shape& s) { return made.add(dtype, {s.n, s.c, s.h, s.w}, false); };
    const BufferId in = tensor(from), out = tensor(to), d_out = tensor(to), winners = tensor(to),
                   d_in = tensor(from), argmax = made.add(DType::u8, {to.n, to.c, to.h, to.w}, false),
                   line = made.add(DType::f32, {2, c.c}, false);
    made.program.tensors.values[1] = in, made.program.tensors.values[2] = out;
    PoolForward forward{.in = in, .out = out};
    PoolBackward backward{.d_out = d_out, .d_in = d_in};
    if (kind == Pool::Kind::max) forward.argmax = argmax, backward.argmax = argmax;
    const bool goes_back = kind == Pool::Kind::global_average || !on_gpu();
    if (!goes_back) forward.scale_shift = line, forward.winners = winners;
    made.add(forward);
    if (goes_back) made.add(backward);
    return {std::move(made), in, out, d_out, d_in, argmax, line, winners};
  }

  static Doubles values_with_equals(const CheckedProgram& program, BufferId id) {
    std::size_t count = 1;
    for (std::int64_t dim : program.program().buffers[id].dims) count *= static_cast<std::size_t>(dim);
    Doubles values = normal_values(DType::f32, count, 1);
    for (double& value : values) value = std::round(2 * value) - 20;
    return values;
  }
  static void expect_conforms(const Made& made) {
    CheckedProgram program(*device(), made.program.graph, made.program.rule, made.program.program);
    Doubles line;
    for (std::int64_t c = 0; c < made.program.program.buffers[made.line].dims[1]; ++c)
      line.push_back(c % 2 == 0 ? 2 : -1);
    for (std::size_t c = 0, channels = line.size(); c < channels; ++c) line.push_back(c % 2 == 0 ? 40 : -20);
    program.write(made.in, values_with_equals(program, made.in));
    program.write(made.line, line);
    const std::size_t gradients = values_with_equals(program, made.d_out).size();
    program.write(made.d_out, normal_values(DType::f32, gradients, 2));
    for (InstructionId id = 0; id < made.program.program.instructions.size(); ++id) program.check(id);
  }
  static void for_each(std::vector<Case> cases, const std::function<void(const Case&, DType)>& check) {
    for (const Case& one : cases)
      for (const DType dtype : storages()) {
        SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << one.n << " x " << one.h << " x " << one.w
                                        << " x " << one.c << ", kernel " << one.kernel);
        check(one, dtype);
        Case odd = one;
        odd.c = one.c - 3;
        if (!on_gpu() && one.h * one.w > 1) check(odd, dtype);
      }
  }
  static std::vector<Case> maxima() {
    std::vector<Case> cases{{2, 7, 9, 8, 3, 2, 1},   // the ResNet's window
                            {1, 8, 8, 64, 3, 2, 1},  // … at its channels
                            {2, 1, 1, 8, 3, 2, 1},   // all but one place are padding
                            {40, 28, 28, 16, 3, 2, 1}};
    if (!on_gpu())
      cases.insert(cases.end(), {{2, 6, 4, 16, 2, 2, 0},     // windows that don't overlap
                                 {1, 6, 7, 24, 3, 1, 1},     // 9 windows over a pixel
                                 {1, 11, 10, 8, 5, 3, 2}});  // a wide one
    return cases;
  }
};
using GpuPools = Pools;  // instructions of GPUs

// On a GPU factors of both signs and small numbers, so that nothing is rounded: many elements are 0 behind
// the ReLU.
TEST_F(Pools, TakeTheFirstOfTheLargest) {
  for_each(maxima(),
           [](const Case& one, DType dtype) { expect_conforms(make(one, dtype, Pool::Kind::max)); });
}

TEST_F(Pools, AverageWholeImages) {
  for_each(
      {{2, 7, 7, 2048, 7, 1, 0}, {1, 1, 1, 8, 1, 1, 0}, {2, 3, 3, 24, 3, 1, 0}, {3, 2, 2, 17 + 7, 2, 1, 0}},
      [](const Case& one, DType dtype) { expect_conforms(make(one, dtype, Pool::Kind::global_average)); });
}

TEST_F(GpuPools, LoseNoNaNAndNoMinusInfinity) {
  for (const DType dtype : storages()) {
    const Made made = make({1, 4, 4, 8, 3, 2, 1}, dtype, Pool::Kind::max);
    for (const std::size_t place : {0, 1, 4, 5}) {  // of the first window, in its channel's pixels
      CheckedProgram program(*device(), made.program.graph, made.program.rule, made.program.program);
      Doubles in(16 * 8, -std::numeric_limits<double>::infinity()), line(16, 1);
      in[3 * 16 + place] = kNotANumber;
      line[3] = -1;  // of the NaN's channel
      program.write(made.in, in);
      program.write(made.line, line);
      program.run(0);
      EXPECT_TRUE(std::isnan(program.held(made.out)[3 * 4]));
      EXPECT_TRUE(std::isnan(program.held(made.winners)[3 * 4]));
      EXPECT_EQ(program.held(made.argmax)[3 * 4], 4.0 + static_cast<double>(place / 4 * 3 + place % 4));
    }
  }
}

}  // namespace
}  // namespace plumb
