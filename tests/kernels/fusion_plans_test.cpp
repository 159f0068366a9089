// Which layers a GPU fuses, against golden text (tests/data/plans): by GPU and precision, in small Graphs,
// and after tuning with made-up times.
#include <gtest/gtest.h>

#include <map>

#include "base/text.h"
#include "base/text_table.h"
#include "kernels/cuda/plan/fusion.h"
#include "models/resnet50.h"
#include "tests/golden_text.h"
#include "tests/kernels/graph_builder.h"
#include "tests/kernels/program_text.h"

namespace plumb::cuda {
namespace {

constexpr ValueId kImages = GraphBuilder::kImages;
using ConvOptions = GraphBuilder::ConvOptions;

// What builds for each GPU; three runs with cuDNN's statistics on an H100 had different ones.
TEST(FusionPlans, Support) {
  std::vector<TextRow> rows{{"precision", "statistics", "normalized input", "its weights", "norm backward",
                             "block end gradient", "product norm"}};
  const auto yes = [](bool has) { return std::string(has ? "yes" : "-"); };
  for (const int compute_capability : {60, 70, 75, 80, 86, 89, 90, 100, 120})
    for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16})
      for (const bool deterministic : {false, true}) {
        if (deterministic && precision != Precision::fp16) continue;
        const FusionSupport has = fusion_support(compute_capability, precision, deterministic);
        rows.push_back(
            {fmt::format("sm_{} {}{}", compute_capability, name_of(precision), deterministic ? " det." : ""),
             yes(has.statistics), yes(has.normalized_input), yes(has.normalized_input_weights),
             yes(has.norm_backward_data), yes(has.block_end_gradient), yes(has.product_norm)});
      }
  expect_golden("plans/fusion_support.txt", padded_table(rows, "l"));
}

// What convolutions and norms become on an H200 in fp16.
std::string text_of(const std::string& title, const Graph& graph) {
  std::string text = "== " + title + "\n";
  const Program program = cuda::describe(graph, {.precision = Precision::fp16}, *find_target("h200"));
  for (const std::string& line : program_lines(program, [](std::string_view) { return true; }))
    if (line.starts_with("step conv") || line.starts_with("step norm"))
      text += line.substr(0, line.find(" |")) + "\n";
  return text;
}

GraphBuilder sixteen_channels() {
  return GraphBuilder({.n = 2, .h = 8, .w = 8, .c = 16});
}

// A norm, whose output another convolution reads.
Graph norm_read_by(const ConvOptions& reader, Activation activation = Activation::relu) {
  GraphBuilder builder = sixteen_channels();
  const ValueId normed = builder.norm(builder.conv(kImages, 16, {}), activation);
  return builder.classify(builder.norm(builder.conv(normed, 16, reader), Activation::relu));
}

Graph norm_read_twice() {
  GraphBuilder builder = sixteen_channels();
  const ValueId normed = builder.norm(builder.conv(kImages, 16, {}), Activation::relu);
  const ValueId next = builder.conv(normed, 16, {.kernel = 3, .padding = 1});
  return builder.classify(builder.norm(next, Activation::relu, normed));
}

Graph convolution_as_residual() {
  GraphBuilder builder = sixteen_channels();
  const ValueId residual = builder.conv(kImages, 16, {});
  return builder.classify(builder.norm(builder.conv(kImages, 16, {}), Activation::relu, residual));
}

// Two convolutions and a norm that adds the images, whose output the reader and another such norm read.
Graph end_read_by(std::int64_t channels, const ConvOptions& reader, Activation activation = Activation::relu,
                  bool third_reader = false) {
  GraphBuilder builder({.n = 2, .h = 8, .w = 8, .c = channels});
  const ValueId end = builder.norm(builder.conv(kImages, channels, {}), activation, kImages);
  ValueId read = builder.norm(builder.conv(end, channels, reader), Activation::relu);
  if (third_reader) read = builder.norm(builder.conv(end, channels, {}), Activation::relu, read);
  return builder.classify(builder.norm(builder.conv(read, channels, {}), Activation::relu, end));
}

// A block's end and the convolution that completes its gradient, with what decides whether the end does
// without the output of its own convolution.
struct Bottleneck {
  std::int64_t inputs = 64, outputs = 128;
  ConvOptions product = {};
  std::optional<Activation> in_front = Activation::relu;  // none: the convolution reads the images
  bool input_has_another_reader = false, output_has_another_reader = false;
};
Graph graph_of(const Bottleneck& one) {
  GraphBuilder builder({.n = 2, .h = 8, .w = 8, .c = one.in_front ? one.outputs : one.inputs});
  const ValueId shortcut = one.in_front ? kImages : builder.norm(builder.conv(kImages, one.outputs, {}));
  const ValueId in =
      one.in_front ? builder.norm(builder.conv(kImages, one.inputs, {}), *one.in_front) : kImages;
  const ValueId product = builder.conv(in, one.outputs, one.product);
  const ValueId end = builder.norm(product, Activation::relu, shortcut);
  const ValueId read = builder.norm(builder.conv(end, 64, {}), Activation::relu);
  ValueId next = builder.norm(builder.conv(read, one.outputs, {}), Activation::relu, end);
  if (one.input_has_another_reader)
    next = builder.norm(builder.conv(in, one.outputs, {}), Activation::relu, next);
  if (one.output_has_another_reader) next = builder.norm(product, Activation::relu, next);
  return builder.classify(next);
}

TEST(FusionPlans, SmallGraphs) {
  std::string text;
  const auto add = [&](const std::string& title, const Graph& graph) { text += text_of(title, graph); };
  add("a norm that two read", norm_read_twice());
  add("two groups", norm_read_by({.groups = 2}));
  add("5x5", norm_read_by({.kernel = 5, .padding = 2}));
  add("no ReLU", norm_read_by({}, Activation::none));
  add("a residual has no statistics", convolution_as_residual());
  expect_golden("plans/fused_norms.txt", text);
}

TEST(FusionPlans, GradientsOfBlockEnds) {
  std::string text;
  const auto add = [&](const std::string& title, const Graph& graph) { text += text_of(title, graph); };
  add("completed", end_read_by(128, {}));
  add("64 channels: tiles have 128", end_read_by(64, {}));
  add("3x3", end_read_by(128, {.kernel = 3, .padding = 1}));
  add("two groups", end_read_by(128, {.groups = 2}));
  add("no ReLU", end_read_by(128, {}, Activation::none));
  add("a third reader", end_read_by(128, {}, Activation::relu, true));
  expect_golden("plans/fused_gradients.txt", text);
}

TEST(FusionPlans, BlockEndsWithoutTheirConvolutionsOutput) {
  std::string text;
  const auto add = [&](const std::string& title, const Bottleneck& one) {
    text += text_of(title, graph_of(one));
  };
  add("from 64 to 128 channels", {});
  add("from 192 to 512", {.inputs = 192, .outputs = 512});
  add("not from 32: inputs come in 64s", {.inputs = 32});
  add("not to 192: outputs come in 128s", {.outputs = 192});
  add("not where the input is as large as the output", {.inputs = 128});
  add("not from 1088: at most 1024 inputs", {.inputs = 1088, .outputs = 2304});
  add("not to 4224: at most 4096 outputs", {.outputs = 4224});
  add("not by 3x3", {.product = {.kernel = 3, .padding = 1}});
  add("not by groups", {.product = {.groups = 2}});
  add("not of a norm without ReLU", {.in_front = Activation::none});
  add("not of the images", {.in_front = {}});
  add("not where another one reads the input", {.input_has_another_reader = true});
  add("not where another one reads the output", {.output_has_another_reader = true});
  expect_golden("plans/fused_block_ends.txt", text);
}

bool completes_gradient(const Instruction& instruction) {
  const auto* conv = instruction.as<ConvBackwardData>();
  return conv && conv->relu_mask;
}
bool gathers_statistics(const Instruction& instruction) {
  const auto* conv = instruction.as<ConvForward>();
  return conv && conv->sums;
}
// Of a block that ends without its convolution's output.
bool is_of_product_norm(const Instruction& instruction) {
  return instruction.as<ChannelProducts>() || instruction.as<ProductNormStatistics>() ||
         instruction.as<BlockEndForward>() || instruction.as<ProductNormBackward>() ||
         instruction.as<BlockEndBackwardData>();
}
bool is_fused(const Instruction& instruction) {
  const auto* conv = instruction.as<ConvForward>();
  const auto* weights = instruction.as<ConvBackwardWeights>();
  return (conv && (conv->sums || conv->scale_shift)) || (weights && weights->scale_shift) ||
         completes_gradient(instruction) || instruction.as<ConvNormBackwardData>() ||
         is_of_product_norm(instruction);
}

// Gradients of plain convolutions take longer: completing one pays, although the block's end then has an
// instruction of its own. The more instructions of an end without its convolution's output are short.
double usual_seconds(const Instruction& instruction) {
  if (is_of_product_norm(instruction)) return 1e-4;
  return instruction.as<ConvBackwardData>() && !completes_gradient(instruction) ? 3e-3 : 1e-3;
}

// The layers that run plain, by pattern and reason, and what their Program then has.
std::string choice_with(const std::string& title, const auto& cost_of) {
  const Graph graph = make_resnet50({.batch = 2, .image_size = 64});
  const CostOf costs = [&](const Program&, const Instruction& instruction) { return cost_of(instruction); };
  DescribeOptions options{.precision = Precision::fp16};
  options.plain = choose_fusion(graph, options, *find_target("h200"), costs);
  std::map<std::pair<std::string_view, std::string>, std::vector<std::string>> layers;
  for (const PlainLayer& layer : options.plain)
    layers[{plumb::name_of(layer.pattern), layer.reason}].push_back(name_of(graph.ops[layer.op]));
  std::string text = "== " + title + "\n";
  for (const auto& [what, names] : layers)
    text += fmt::format("without {}, {}: {} layers, {} … {}\n", what.first, what.second, names.size(),
                        names.front(), names.back());
  const Program program = cuda::describe(graph, options, *find_target("h200"));
  const auto fails = [&](const Instruction& one) { return !cost_of(one).failure.empty(); };
  return text + fmt::format("{} fused instructions, {} complete gradients, {} of block ends, {} fail\n",
                            std::ranges::count_if(program.instructions, is_fused),
                            std::ranges::count_if(program.instructions, completes_gradient),
                            std::ranges::count_if(program.instructions, is_of_product_norm),
                            std::ranges::count_if(program.instructions, fails));
}

InstructionCost slow_if(bool slow, const Instruction& instruction) {
  return {slow ? 1.0 : usual_seconds(instruction), ""};
}
InstructionCost fails_if(bool fails, const char* why = "no engine") {
  return {0, fails ? why : ""};
}

TEST(FusionPlans, Choices) {
  using I = const Instruction&;
  const auto is_backward = [](I one) { return one.as<ConvNormBackwardData>() != nullptr; };
  const auto named = [](I one, const char* name) { return is_fused(one) && one.name == name; };
  expect_golden("plans/fusion_choices.txt",
                choice_with("all alike", [](I) {
                  return InstructionCost{};
                }) + choice_with("fused ones fast", [](I one) {
                  return InstructionCost{is_fused(one) ? 1e-9 : usual_seconds(one), ""};
                }) + choice_with("fused ones slow", [](I one) {
                  return InstructionCost{is_fused(one) ? 1 : 1e-3, ""};
                }) + choice_with("no engine goes back through norms", [&](I one) {
                  return fails_if(is_backward(one));
                }) + choice_with("nor for the first layer's statistics", [&](I one) {
                  if (named(one, "layer1.0.conv1.forward")) return fails_if(true, "no statistics");
                  return fails_if(is_backward(one), "no backward");
                }) + choice_with("no engine gathers statistics", [](I one) {
                  return fails_if(gathers_statistics(one));
                }) + choice_with("nothing completes gradients", [](I one) {
                  const char* why = completes_gradient(one) ? "no algorithm" : "";
                  return InstructionCost{usual_seconds(one), why};
                }) + choice_with("nothing multiplies channels", [](I one) {
                  const char* why = one.as<ChannelProducts>() ? "no algorithm" : "";
                  return InstructionCost{usual_seconds(one), why};
                }) + choice_with("one slow gradient", [&](I one) {
                  return slow_if(named(one, "layer3.2.conv1.backward_data"), one);
                }) + choice_with("one slow block end", [&](I one) {
                  return slow_if(named(one, "layer2.1.bn3.forward"), one);
                }) + choice_with("one slow forward", [&](I one) {
                  return slow_if(named(one, "layer2.1.conv2.forward"), one);
                }));
}

}  // namespace
}  // namespace plumb::cuda
