// 3x3 convolutions of 64 channels by our own kernel, which only tuning chooses: here it is named.
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cuda/plan/window_shape.h"
#include "kernels/cuda/vendors/conv.h"
#include "kernels/program/lowering.h"
#include "tests/conformance/device_under_test.h"
#include "tests/conformance/hand_made.h"
#include "tests/conformance/reference_run.h"

namespace plumb {
namespace {

// Forward with and without sums, its data's gradient with and without the norm in front, and its weights'.
class WindowProgram {
 public:
  WindowProgram(DType dtype, const Shape& extent) : dtype_(dtype), made_(graph_of(extent)) {
    made_.program.layout = TensorLayout::nhwc;
    made_.program.tensors.parameters[0].master = made_.add_normal(DType::f32, weight_dims(), 1);
    const BufferId in = made_.add_normal(dtype, nchw(extent), 2),
                   weight = made_.add_normal(dtype, weight_dims(), 3, 1.0 / 16),
                   d_out = made_.add_normal(dtype, nchw(extent), 4);
    const auto tensor = [&] { return made_.add(dtype, nchw(extent), false); };
    const auto line = [&](std::int64_t rows) { return made_.add(DType::f32, {rows, kChannels}, false); };
    const auto channels = [&](std::uint64_t seed) {
      return made_.add_normal(DType::f32, {kChannels}, seed, 0.25, 0.5);
    };
    add(ConvForward{.in = in, .weight = weight, .out = tensor()});
    add(ConvForward{.in = in, .weight = weight, .out = tensor(), .sums = line(2)});
    add(ConvBackwardData{.d_out = d_out, .weight = weight, .d_in = tensor()});
    add(ConvNormBackwardData{.d_out = d_out,
                             .weight = weight,
                             .norm_in = in,
                             .bias = channels(5),
                             .mean = channels(6),
                             .inv_std = channels(7),
                             .scale = channels(8),
                             .d_activated = tensor(),
                             .d_scale = made_.add(DType::f32, {kChannels}, false),
                             .d_bias = made_.add(DType::f32, {kChannels}, false),
                             .coefficients = line(3)});
    add(ConvBackwardWeights{.in = in, .d_out = d_out, .d_weight = made_.add(dtype, weight_dims(), false)});
  }

  std::unique_ptr<CheckedProgram> start(Device& device) const { return made_.start(device); }

 private:
  static constexpr std::int64_t kChannels = cuda::kWindowChannels;
  static std::vector<std::int64_t> weight_dims() {
    return {kChannels, kChannels, cuda::kWindow, cuda::kWindow};
  }
  static Graph graph_of(const Shape& extent) {
    Graph graph;
    graph.values = {{"images", {extent.n, 1, 1, 3}}, {"in", extent}, {"out", extent}};
    graph.parameters = {{.name = "weight", .dims = weight_dims()}};
    graph.ops = {Conv{.name = "conv", .in = 1, .out = 2, .kernel = cuda::kWindow, .padding = 1}};
    return graph;
  }
  void add(Operation operation) {
    Instruction& instruction = made_.program.instructions[made_.add(std::move(operation))];
    instruction.engine = cuda::kOwnKernel;
    instruction.workspace_bytes = 32 << 20;
  }

  DType dtype_;
  HandMade made_;
};

class GpuWindows : public Conformance {
 protected:
  void SetUp() override {
    if (device()->limits().compute_capability != cuda::kWindowComputeCapability)
      GTEST_SKIP() << "not a Hopper";
  }
  static void check(DType dtype, const Shape& extent) {
    SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << extent.n << " x " << extent.h << " x "
                                    << extent.w);
    const auto program = WindowProgram(dtype, extent).start(*device());
    for (InstructionId id = 0; id < program->program().instructions.size(); ++id) {
      EXPECT_EQ(program->program().instructions[id].engine, cuda::kOwnKernel);
      program->check(id);
    }
  }
  static constexpr DType kHalf[]{DType::f16, DType::bf16};
};

// One pixel; a tile; rows and columns that fill none, one more than a tile, several tiles; two images.
TEST_F(GpuWindows, OfManySizes) {
  for (const Shape& extent :
       {Shape{1, 1, 1, 64}, {1, 4, 56, 64}, {2, 7, 5, 64}, {1, 5, 57, 64}, {1, 9, 3, 64}, {3, 3, 114, 64}})
    for (const DType dtype : kHalf) check(dtype, extent);
}

// Several tiles to a block: an H200 has 132 multiprocessors.
TEST_F(GpuWindows, OfMoreTilesThanMultiprocessors) {
  check(DType::f16, {5, 4 * 56, 1, 64});
}

}  // namespace
}  // namespace plumb
