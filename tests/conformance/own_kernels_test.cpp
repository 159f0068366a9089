// Our own kernels alone, each a few times over small tensors: for compute-sanitizer, which slows a GPU down a
// hundredfold and has nothing to find in the libraries'. Networks are described, what a library would compute
// is left out, and what that would have written is numbers.
#include <algorithm>
#include <set>

#include "kernels/cuda/plan/block_end_shape.h"
#include "kernels/cuda/plan/depthwise_shape.h"
#include "kernels/cuda/plan/stem_shape.h"
#include "tests/conformance/device_under_test.h"
#include "tests/conformance/hand_made.h"

namespace plumb {
namespace {

class OwnKernels : public Conformance {
 protected:
  // In f32 a library computes the stem.
  static bool is_own(const Graph& graph, const Instruction& instruction, Precision precision) {
    const Conv* conv = instruction.op == kNone ? nullptr : std::get_if<Conv>(&graph.ops[instruction.op]);
    if (conv && instruction.as<ConvBackwardData>() && instruction.as<ConvBackwardData>()->d_bias) return true;
    if (instruction.as<ProductNormBackward>()) return true;
    if (const auto* end = instruction.as<BlockEndForward>()) return !end->by_products;
    if (const auto* end = instruction.as<BlockEndBackwardData>()) return !end->by_products;
    if (conv && instruction.as<Update>() == nullptr && !instruction.as<Accumulate>())
      return cuda::is_depthwise(graph, *conv) ||
             (cuda::is_stem(graph, *conv) && precision != Precision::fp32);
    return !instruction.as<DenseForward>() && !instruction.as<DenseBackwardData>() &&
           !instruction.as<DenseBackwardWeights>() && !instruction.as<MarginProducts>() &&
           !instruction.as<MarginFeatureProducts>() && !instruction.as<MarginWeightGradient>();
  }

  // Some value for what a left-out instruction would have written.
  static void fill(CheckedProgram& program, BufferId id) {
    const Buffer& buffer = program.program().buffers[id];
    std::size_t count = 1;
    for (std::int64_t dim : buffer.dims) count *= static_cast<std::size_t>(dim);
    if (buffer.dtype == DType::u8) return program.write(id, Doubles(count, 4));  // the middle of a window
    Doubles values = normal_values(DType::f32, count, id);
    if (buffer.name.ends_with(".sums"))  // of squares, too: no variance is negative
      for (std::size_t i = 0; i < count; ++i) values[i] = i < count / 2 ? values[i] : 10000 + values[i];
    if (buffer.name.ends_with(".in_products"))  // likewise
      for (std::size_t i = 0; i < count; i += static_cast<std::size_t>(buffer.dims[1]) + 1)
        values[i] += 10000;
    if (buffer.name.ends_with(".products"))  // far from cosines of 1
      for (double& value : values) value *= 0.05;
    // Products of channels with themselves: a large diagonal keeps variances positive.
    if (buffer.dtype == DType::f32 && buffer.dims.size() == 2 && buffer.dims[0] == buffer.dims[1])
      for (std::size_t i = 0; i < count; i += static_cast<std::size_t>(buffer.dims[0]) + 1)
        values[i] += 10000;
    program.write(id, values);
  }

  static void run(const Graph& graph) {
    const TestTensors tensors = random_tensors(graph, 7);
    for (const Offer& offer : offers()) {
      if (!fits(graph, offer) || offer.compute_capability != 0 || offer.describe.precision == Precision::tf32)
        continue;
      SCOPED_TRACE(offer.name);
      Program described = describe(graph, offer.describe, device()->limits());
      std::erase_if(described.instructions,
                    [&](const Instruction& one) { return !is_own(graph, one, offer.describe.precision); });
      CheckedProgram program(*device(), graph, {}, std::move(described));
      program.write(tensors);
      program.write({.learning_rate = 0.01F, .loss_scale = offer.loss_scale});
      std::set<BufferId> filled;
      for (int i = 0; i < 2; ++i) {
        for (const BufferId id : filled) fill(program, id);  // some are overwritten in place
        for (InstructionId id = 0; id < program.program().instructions.size(); ++id) {
          const Instruction& instruction = program.program().instructions[id];
          for (const BufferUse& use : instruction.uses())
            if (use.reads() && use.buffer != program.program().tensors.state &&
                program.held(use.buffer).empty())
              fill(program, use.buffer), filled.insert(use.buffer);
          program.check(id);
        }
      }
    }
  }
};

TEST_F(OwnKernels, OfAResNet) {
  GraphBuilder b({2, 16, 16, 3});
  ValueId out =
      b.norm(b.conv(GraphBuilder::kImages, 64, {.kernel = 7, .stride = 2, .padding = 3}), Activation::relu);
  out = b.max_pool(out, 3, 2, 1);
  for (int block = 0; block < 3; ++block) {
    const ValueId inner = b.norm(b.conv(out, 64, {}), Activation::relu);
    const ValueId residual = block == 0 ? b.norm(b.conv(out, 128, {})) : out;
    out = b.norm(b.conv(inner, 128, {}), Activation::relu, residual);
  }
  run(b.classify(out, 33));
}

TEST_F(OwnKernels, OfAMobileFaceNet) {
  GraphBuilder b({6, 8, 8, 3});
  ValueId out = b.norm_prelu(b.conv(GraphBuilder::kImages, 16, {.kernel = 3, .padding = 1}));
  out = b.norm_prelu(b.conv(out, 16, {.kernel = 3, .stride = 2, .padding = 1, .groups = 16}), false);
  out = b.norm(b.conv(out, 16, {}), Activation::none, out);
  out = b.dropout(b.norm(b.conv(out, 16, {.kernel = 4, .groups = 16})), 0.4);
  const ValueId features = b.norm(b.dense(out, 24));
  Graph graph = b.loss(features);
  graph.parameters.push_back({.name = "head.weight", .dims = {300, 24}, .shard = RowShard{0, 300}});
  graph.ops.back() = MarginLoss{.name = "head",
                                .in = features,
                                .weight = graph.parameters.size() - 1,
                                .classes = 300,
                                .scale = 16,
                                .head = Head::sampled,
                                .sample_rate = 0.5,
                                .seed = 5};
  graph.head_begin = graph.ops.size() - 3;
  run(graph);
}

}  // namespace
}  // namespace plumb
