// Blocks that end without the output of their last convolution, or of their shortcut's, by every offer of a
// GPU that has them: statistics and gradients by products, sampled pixels, masked and completed gradients.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/conformance/device_under_test.h"

namespace plumb {
namespace {

class GpuBlockEnds : public Conformance {
 protected:
  // Of the convolution that ends the first block. second_stride: of a second stage with twice the channels,
  // whose shortcut has the products of every second_stride-th pixel; 0: there is none.
  struct Size {
    std::int64_t batch, side, inputs;
    int second_stride = 0;
  };
  // The first block of a stage has a convolution in its shortcut; the next block's first convolution
  // completes its gradient. An instruction masks the last block's.
  static Graph blocks(const Size& size) {
    GraphBuilder b({size.batch, size.side, size.side, 3});
    ValueId out = b.norm(b.conv(GraphBuilder::kImages, 64, {}), Activation::relu);
    std::int64_t inputs = size.inputs;
    out = b.bottleneck(out, inputs, 1);
    if (size.second_stride > 0) out = b.bottleneck(out, inputs *= 2, size.second_stride);
    return b.classify(b.bottleneck(out, inputs, 1));
  }

  // GPUs from sm_80 on end blocks alike, and those before by a library's products.
  static void for_each_offer(const std::function<void(const Offer&)>& use) {
    for (const Offer& offer : offers())
      if (offer.describe.fuse && !offer.describe.fp32_head && offer.compute_capability < 80) use(offer);
  }
  static void expect_blocks(const Size& size, const std::function<void(const Graph&, TestTensors&)>& change) {
    SCOPED_TRACE(testing::Message() << size.batch << " x " << size.side << " x " << size.side << ", "
                                    << size.inputs << " inputs");
    const Graph graph = blocks(size);
    TestTensors tensors = random_tensors(graph, 7);
    change(graph, tensors);
    for_each_offer([&](const Offer& offer) {
      const bool is_half =
          offer.describe.precision == Precision::fp16 || offer.describe.precision == Precision::bf16;
      if ((size.side < 7 && size.inputs <= 64) || (is_half && offer.compute_capability == 0))
        expect_conforms(graph, offer, {}, tensors);
    });
  }
  static void expect_blocks(const Size& size) {
    expect_blocks(size, [](const Graph&, TestTensors&) {});
  }

  // use(convolution, the norm behind it, the norm in front) for each block's last convolution.
  static void for_each_end(const Graph& graph, const auto& use) {
    for (std::size_t i = 1; i + 1 < graph.ops.size(); ++i) {
      const auto* conv = std::get_if<Conv>(&graph.ops[i]);
      const auto* front = std::get_if<BatchNorm>(&graph.ops[i - 1]);
      for (const Op& op : graph.ops) {
        const auto* end = std::get_if<BatchNorm>(&op);
        if (conv && front && end && end->residual && end->in == conv->out && front->out == conv->in)
          use(*conv, *end, *front);
      }
    }
  }

  // Runs a step, `look`ing at each instruction after it ran.
  static void run(const Graph& graph, const Offer& offer, const TestTensors& tensors, const auto& look) {
    SCOPED_TRACE(offer.name);
    DeviceLimits limits = device()->limits();
    if (offer.compute_capability != 0) limits.compute_capability = offer.compute_capability;
    CheckedProgram program(*device(), graph, {}, describe(graph, offer.describe, limits));
    program.write(tensors);
    program.write({.learning_rate = 0.01F, .loss_scale = offer.loss_scale});
    for (InstructionId id = 0; id < program.program().instructions.size(); ++id) {
      program.run(id);
      look(program, program.program().instructions[id]);
    }
  }
  static bool has_nan(const Doubles& values) {
    return std::ranges::any_of(values, [](double value) { return std::isnan(value); });
  }
};

// Pixels: fewer than a tile of 128, a bit more than one, several; never a multiple of it. Channels: blocks of
// the statistics have 4 rows, from 256 channels on 8, from 512 on 16; 192 channels leave threads over.
TEST_F(GpuBlockEnds, OfAllSizes) {
  for (const Size& size :
       {Size{1, 1, 64}, {1, 5, 64, 1}, {3, 7, 64, 2}, {3, 7, 128}, {1, 5, 192}, {1, 5, 256}, {1, 2, 512}})
    expect_blocks(size);
}

// Input channel 0 is constant. Output channel 0 has a scale of 0, output channel 1 is 0 everywhere, output
// channel 2 is constant, and output channel 3 has a variance of about epsilon.
TEST_F(GpuBlockEnds, OfConstantChannels) {
  expect_blocks({2, 5, 64, 2}, [](const Graph& graph, TestTensors& tensors) {
    for_each_end(graph, [&](const Conv& conv, const BatchNorm& end, const BatchNorm& front) {
      tensors.parameters[front.scale][0] = 0;
      tensors.parameters[front.bias][0] = 1;
      const auto inputs = static_cast<std::size_t>(graph.parameters[conv.weight].dims[1]);
      std::vector<float>& weight = tensors.parameters[conv.weight];
      for (std::size_t c = 0; c < inputs; ++c) {
        weight[inputs + c] = 0;
        if (c > 0) weight[2 * inputs + c] = 0;
        weight[3 * inputs + c] *= 0x1p-8F;
      }
      std::vector<float>& scale = tensors.parameters[end.scale];
      scale[0] = 0;
      scale[1] *= 0x1p-6F, scale[2] *= 0x1p-6F;  // whose deviation is 0
    });
  });
}

// Norms leave weights free to shrink and to grow: the factors' power of two depends on them.
TEST_F(GpuBlockEnds, OfSmallAndLargeWeights) {
  for (const float times : {0x1p-6F, 0x1p6F})
    expect_blocks({2, 5, 64}, [&](const Graph& graph, TestTensors& tensors) {
      for_each_end(graph, [&](const Conv& conv, const BatchNorm&, const BatchNorm&) {
        for (float& weight : tensors.parameters[conv.weight]) weight *= times;
      });
    });
}

// The last norm of a block starts with this scale: x has no effect, and its gradient is 0.
TEST_F(GpuBlockEnds, OfAScaleOfZero) {
  expect_blocks({2, 5, 64}, [](const Graph& graph, TestTensors& tensors) {
    for_each_end(graph, [&](const Conv&, const BatchNorm& end, const BatchNorm&) {
      std::ranges::fill(tensors.parameters[end.scale], 0.0F);
    });
  });
}

// The factors of the data gradient need their power of two.
TEST_F(GpuBlockEnds, OfSmallAndLargeGradients) {
  const Graph graph = blocks({2, 5, 64});
  for_each_offer([&](Offer offer) {
    if (offer.describe.precision != Precision::fp16) return;
    for (const float loss_scale : {0x1p-8F, 0x1p14F}) {
      SCOPED_TRACE(loss_scale);
      offer.loss_scale = loss_scale;
      expect_conforms(graph, offer, {}, random_tensors(graph, 7));
    }
  });
}

// Where only the shortcut's convolution has an output, and where no convolution completes or sums a gradient.
TEST_F(GpuBlockEnds, WithStoredShortcutsAndPlainGradients) {
  const Graph graph = blocks({2, 5, 64, 2});
  for (const std::vector<FusedPattern>& without : {std::vector{FusedPattern::product_shortcut},
                                                   {FusedPattern::block_end_gradient},
                                                   {FusedPattern::product_norm, FusedPattern::block_end_sums},
                                                   {FusedPattern::product_norm}})
    for_each_offer([&](Offer offer) {
      if (offer.describe.precision != Precision::fp16) return;
      for (std::size_t op = 0; op < graph.ops.size(); ++op)
        for (const FusedPattern pattern : without)
          offer.describe.plain.push_back({op, pattern, "to compare"});
      expect_conforms(graph, offer, {}, random_tensors(graph, 7));
    });
}

// Tensor cores chop what TF32 has no bits for: there must be nothing to chop.
TEST_F(GpuBlockEnds, RoundTheFactorsOfTf32) {
  const Graph graph = blocks({2, 5, 64, 2});
  const auto expect_rounded = [](const CheckedProgram& program, BufferId id) {
    for (const double value : program.held(id))
      ASSERT_EQ(std::bit_cast<std::uint32_t>(static_cast<float>(value)) & 0x1fffU, 0U)
          << program.program().buffers[id].name << " " << value;
  };
  for_each_offer([&](const Offer& offer) {
    if (offer.describe.precision != Precision::tf32) return;
    int factors = 0;
    run(graph, offer, random_tensors(graph, 7), [&](CheckedProgram& program, const Instruction& instruction) {
      std::vector<BufferId> rounded;
      if (const auto* apply = instruction.as<BatchNormApply>(); apply && apply->out_sums)
        rounded = {apply->out};
      if (const auto* sample = instruction.as<SamplePixels>()) rounded = {*sample->out};
      if (const auto* masked = instruction.as<MaskedGradient>()) rounded = {masked->d_in};
      if (const auto* statistics = instruction.as<ProductNormStatistics>())
        rounded = {statistics->scaled, statistics->scaled_transposed};
      if (const auto* backward = instruction.as<ProductNormBackward>()) rounded = {backward->factors};
      for (const BufferId id : rounded) expect_rounded(program, id), ++factors;
    });
    EXPECT_GT(factors, 0);
  });
}

// An overflow must reach the output in forward and the gradients in backward.
TEST_F(GpuBlockEnds, LetANotANumberThrough) {
  const Graph graph = blocks({2, 5, 64});
  TestTensors tensors = random_tensors(graph, 7);
  for_each_offer([&](const Offer& offer) {
    BufferId gradient = kNone;
    run(graph, offer, tensors, [&](CheckedProgram& program, const Instruction& instruction) {
      const auto* products = instruction.as<ChannelProducts>();
      if (products && gradient == kNone && products->left.buffer != products->right.buffer) {
        gradient = products->left;
        Doubles numbers = program.held(gradient);
        numbers[0] = std::numeric_limits<double>::quiet_NaN();
        program.write(gradient, numbers);
        program.run(static_cast<InstructionId>(&instruction - program.program().instructions.data()));
      }
      const auto* backward = instruction.as<ProductNormBackward>();
      if (backward && gradient != kNone) {
        EXPECT_TRUE(has_nan(program.held(backward->d_weight)));
      }
      if (const auto* data = instruction.as<BlockEndBackwardData>()) {
        EXPECT_TRUE(has_nan(program.held(data->d_in)));
      }
    });
    EXPECT_NE(gradient, kNone);
  });
  tensors.images[0] = std::numeric_limits<float>::quiet_NaN();
  for_each_offer([&](const Offer& offer) {
    run(graph, offer, tensors, [](CheckedProgram& program, const Instruction& instruction) {
      if (const auto* end = instruction.as<BlockEndForward>()) {
        EXPECT_TRUE(has_nan(program.held(end->out)));
      }
    });
  });
}

}  // namespace
}  // namespace plumb
