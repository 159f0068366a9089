// Block ends by our own kernels with products of warpgroups, which only tuning chooses: here they are named.
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cuda/plan/block_end_shape.h"
#include "kernels/cuda/plan/window_shape.h"
#include "kernels/cuda/vendors/conv.h"
#include "kernels/program/lowering.h"
#include "tests/conformance/device_under_test.h"
#include "tests/conformance/hand_made.h"
#include "tests/conformance/reference_run.h"

namespace plumb {
namespace {

// A block's output, and the gradient of its last convolution's input with and without the norm in front.
class WideEndProgram {
 public:
  WideEndProgram(DType dtype, const Shape& pixels, std::int64_t outputs, bool goes_back)
      : dtype_(dtype),
        in_(with_channels(pixels, kInputs)),
        out_(with_channels(pixels, outputs)),
        made_(graph()) {
    made_.program.layout = TensorLayout::nhwc;
    made_.program.tensors.parameters[0].master = made_.add_normal(DType::f32, weight_dims(), 1);
    const double deviation = 1 / std::sqrt(static_cast<double>(kInputs));
    const BufferId in = made_.add_normal(dtype, nchw(in_), 2);
    add(BlockEndForward{.in = in,
                        .scaled_transposed = made_.add_normal(dtype, {kInputs, out_.c}, 3, deviation),
                        .scale_shift = made_.add_normal(DType::f32, {2, out_.c}, 4),
                        .residual = made_.add_normal(dtype, nchw(out_), 5),
                        .out = made_.add(dtype, nchw(out_), false),
                        .relu_mask = made_.add(DType::u8, {(out_.elements() + 7) / 8}, false)});
    if (!goes_back) return;
    BlockEndBackwardData data{.d_out = made_.add_normal(dtype, nchw(out_), 6),
                              .in = in,
                              .scaled = made_.add_normal(dtype, {out_.c, kInputs}, 7, deviation),
                              .factors = made_.add_normal(dtype, {kInputs, kInputs}, 8, 4),
                              .shift = made_.add_normal(DType::f32, {kInputs + 1}, 9, 1.0 / 64),
                              .d_in = made_.add(dtype, nchw(in_), false)};
    add(data);
    data.norm_in = made_.add_normal(dtype, nchw(in_), 10);
    data.scale_shift = made_.add_normal(DType::f32, {2, kInputs}, 11);
    data.mean = channels(12);
    data.inv_std = channels(13);
    data.scale = channels(14);
    data.d_in = made_.add(dtype, nchw(in_), false);
    data.d_scale = made_.add(DType::f32, {kInputs}, false);
    data.d_bias = made_.add(DType::f32, {kInputs}, false);
    data.coefficients = made_.add(DType::f32, {3, kInputs}, false);
    add(data);
  }

  std::unique_ptr<CheckedProgram> start(Device& device) const { return made_.start(device); }

 private:
  static constexpr std::int64_t kInputs = cuda::kWideChannels;
  static Shape with_channels(Shape shape, std::int64_t channels) {
    shape.c = channels;
    return shape;
  }
  std::vector<std::int64_t> weight_dims() const { return {out_.c, kInputs, 1, 1}; }
  Graph graph() const {
    Graph graph;
    graph.values = {{"images", {in_.n, 1, 1, 3}}, {"in", in_}, {"x", out_}};
    graph.parameters = {{.name = "weight", .dims = weight_dims()}};
    graph.ops = {Conv{.name = "conv", .in = 1, .out = 2}};
    return graph;
  }
  void add(Operation operation) {
    made_.program.instructions[made_.add(std::move(operation))].engine = cuda::kOwnWarpgroupKernel;
  }
  BufferId channels(std::uint64_t seed) { return made_.add_normal(DType::f32, {kInputs}, seed, 0.25, 0.5); }

  DType dtype_;
  Shape in_, out_;
  HandMade made_;
};

class GpuWideBlockEnds : public Conformance {
 protected:
  void SetUp() override {
    if (device()->limits().compute_capability != cuda::kWindowComputeCapability)
      GTEST_SKIP() << "not a Hopper";
  }
  static void check(DType dtype, const Shape& pixels, std::int64_t outputs, bool goes_back = true) {
    SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << pixels.n << " x " << pixels.h << " x "
                                    << pixels.w << ", " << outputs << " outputs");
    const auto program = WideEndProgram(dtype, pixels, outputs, goes_back).start(*device());
    for (InstructionId id = 0; id < program->program().instructions.size(); ++id) {
      EXPECT_EQ(program->program().instructions[id].engine, cuda::kOwnWarpgroupKernel);
      program->check(id);
    }
  }
};

// One pixel; one image of layer 3, whose last tiles have 4 and 68 pixels; a tile of 128, two and one more.
TEST_F(GpuWideBlockEnds, OfManySizes) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    check(dtype, {1, 1, 1, 0}, 512);
    check(dtype, {1, 14, 14, 0}, 1024);
    check(dtype, {1, 8, 16, 0}, 256);
    check(dtype, {3, 1, 43, 0}, 512);
  }
}

// Up to three tiles to a block: an H200 has 132 multiprocessors, so 66 blocks share the tiles of 256
// channels.
TEST_F(GpuWideBlockEnds, OfMoreTilesThanMultiprocessors) {
  check(DType::f16, {1, 1, 64 * (2 * 66 + 1) - 40, 0}, 512, /*goes_back=*/false);
}

}  // namespace
}  // namespace plumb
