// Whole plans of training steps against golden text (tests/data/plans): buffers, instructions, operands,
// work; which layers are fused, and why not more; memory and traffic of whole networks.
#include <gtest/gtest.h>

#include <regex>

#include "base/text.h"
#include "base/text_table.h"
#include "kernels/program/describe.h"
#include "kernels/program/memory_plan.h"
#include "kernels/program/roofline.h"
#include "models/arcface.h"
#include "models/resnet50.h"
#include "tests/golden_text.h"
#include "tests/kernels/program_text.h"

namespace plumb {
namespace {

using Patterns = std::vector<FusedPattern>;
constexpr DescribeOptions kHalf{.precision = Precision::fp16, .scale_loss = true};

DescribeOptions without(const Graph& graph, const Patterns& patterns, DescribeOptions options = kHalf) {
  for (std::size_t op = 0; op < graph.ops.size(); ++op)
    for (const FusedPattern pattern : patterns) options.plain.push_back({op, pattern, "to compare"});
  return options;
}

// A CPU whose convolutions run by Winograd's algorithm and in bf16.
DeviceLimits modern_cpu() {
  DeviceLimits limits = *find_target("cpu");
  limits.winograd_lanes = 16;
  limits.flops_per_second[Precision::bf16] = 2 * limits.flops_per_second[Precision::fp32];
  return limits;
}
DeviceLimits target(const std::string& name) {
  return name == "cpu" ? modern_cpu() : find_target(name).value();
}

// One plan, and others by the lines in which they differ.
class PlanText {
 public:
  // Keeps lines whose name matches.
  explicit PlanText(const char* keeps) : keeps_(keeps) {}

  void add(const std::string& title, const Graph& graph, const DescribeOptions& options,
           const std::string& gpu) {
    const Program program = describe(graph, options, target(gpu));
    const std::vector<std::string> lines = program_lines(
        program, [&](std::string_view name) { return std::regex_search(name.begin(), name.end(), keeps_); });
    cases_.add(title + (program.allow_tf32 ? ", tf32" : ""), lines);
  }
  const std::string& text() const { return cases_.text(); }

 private:
  std::regex keeps_;
  GoldenCases cases_;
};

// A block with a shortcut's convolution, a plain one, one with stride 2, and the last one's end.
constexpr const char* kSomeBlocks = "^(layer1\\.[01]|layer2\\.0|layer4\\.2\\.bn3|[^l]|loss|load)";

TEST(Plans, ResNet50OnGpus) {
  const Graph graph = make_resnet50({.batch = 2, .image_size = 64});
  PlanText plans(kSomeBlocks);
  plans.add("h200 fp16", graph, kHalf, "h200");
  plans.add("h200 fp16, real images, no loss scaling", graph,
            {.precision = Precision::fp16, .load_batch_every_step = true}, "h200");
  plans.add("h200 fp16, no product_shortcut", graph, without(graph, {FusedPattern::product_shortcut}),
            "h200");
  plans.add("a100 fp16", graph, kHalf, "a100-80gb");
  plans.add("b200 fp16", graph, kHalf, "b200");
  plans.add("h200 fp16, --deterministic", graph,
            {.precision = Precision::fp16, .deterministic = true, .scale_loss = true}, "h200");
  expect_golden("plans/resnet50_fused.txt", plans.text());
}

TEST(Plans, ResNet50WithOutputsOfAllConvolutions) {
  const Graph graph = make_resnet50({.batch = 2, .image_size = 64});
  PlanText plans("^(layer1\\.[01]|layer2\\.0)");
  plans.add("h200 fp16", graph, without(graph, {FusedPattern::product_norm}), "h200");
  plans.add("no block_end_sums", graph,
            without(graph, {FusedPattern::block_end_sums, FusedPattern::product_norm}), "h200");
  plans.add("no block_end_gradient", graph,
            without(graph, {FusedPattern::block_end_gradient, FusedPattern::product_norm}), "h200");
  plans.add("a100 fp16", graph, without(graph, {FusedPattern::product_norm}), "a100-80gb");
  plans.add("--fusion off", graph, {.precision = Precision::fp16, .fuse = false, .scale_loss = true}, "h200");
  expect_golden("plans/resnet50_stored.txt", plans.text());
}

TEST(Plans, ResNet50ByLibraries) {
  const Graph graph = make_resnet50({.batch = 2, .image_size = 64});
  PlanText plans("^(layer1\\.[01]|layer2\\.0|conv1|images)");
  plans.add("t4 fp16", graph, kHalf, "t4");
  plans.add("no product_shortcut", graph, without(graph, {FusedPattern::product_shortcut}), "t4");
  expect_golden("plans/resnet50_libraries.txt", plans.text());
}

TEST(Plans, ResNet50InSinglePrecision) {
  const Graph graph = make_resnet50({.batch = 2, .image_size = 64});
  PlanText strict("^(layer1\\.[01]|[^l])"), rounded("^layer1\\.0");
  strict.add("v100 fp32", graph, {}, "v100-16gb");
  rounded.add("h200 tf32", graph, {.precision = Precision::tf32}, "h200");
  expect_golden("plans/resnet50_single.txt", strict.text() + rounded.text());
}

TEST(Plans, ResNet50OnCpus) {
  const Graph graph = make_resnet50({.batch = 2, .image_size = 64});
  PlanText plans("^(layer1\\.[01]|layer4\\.2\\.bn3|[^l])"), halves("^(layer1\\.1|conv1|images|fc)");
  plans.add("fp32", graph, {}, "cpu");
  halves.add("bf16", graph, {.precision = Precision::bf16}, "cpu");
  expect_golden("plans/resnet50_cpu.txt", plans.text() + halves.text());
}

ModelOptions small(Backbone backbone = kIResNet50) {
  return {.backbone = backbone, .batch = 2, .image_size = 32, .embedding = 64, .classes = 100};
}

TEST(Plans, FacesOnGpus) {
  DescribeOptions fp32_head = kHalf;
  fp32_head.fp32_head = true;
  DescribeOptions tf32_head = fp32_head;
  tf32_head.tf32_head = true;
  ModelOptions one_slope = small(), more_classes = small();
  one_slope.prelu_per_layer = true;
  more_classes.classes = 101;
  PlanText plans("^(layer1\\.0|layer3\\.[05]\\.bn|[^l]|labels)");
  plans.add("r50, h200 fp16", make_arcface(small()), kHalf, "h200");
  plans.add("fp32 head", make_arcface(small()), fp32_head, "h200");
  plans.add("tf32 head", make_arcface(small()), tf32_head, "h200");
  plans.add("101 classes", make_arcface(more_classes), kHalf, "h200");
  plans.add("one slope per layer", make_arcface(one_slope), kHalf, "h200");
  expect_golden("plans/faces.txt", plans.text());
}

TEST(Plans, MobileFaceNetOnGpus) {
  PlanText plans("^(conv_1|conv_6|dconv_23|[^cdr])");
  plans.add("y1, h200 fp16", make_arcface(small(kMobileFaceNet)), kHalf, "h200");
  expect_golden("plans/mobilefacenet.txt", plans.text());
}

// Where a head's collectives and samples are, on either device.
TEST(Plans, HeadsOfSeveralRanks) {
  for (const char* device : {"h200", "cpu"}) {
    PlanText plans("^(features|head|update)");
    for (const int ranks : {1, 3})
      for (const Head head : {Head::sharded, Head::sampled}) {
        ModelOptions options = small();
        options.head = head;
        options.sample_rate = 0.25;
        options.world_size = ranks;
        options.rank = ranks - 1;
        plans.add(fmt::format("{}, {} ranks", head == Head::sharded ? "sharded" : "sampled", ranks),
                  make_arcface(options), {}, device);
      }
    expect_golden(fmt::format("plans/heads_{}.txt", device), plans.text());
  }
}

// Bytes of ResNet-50 in fp16 per image. A count by hand gives 344 MB for plain convolutions with fused norm,
// add and ReLU, from which shortcuts and the max pool save 14 here, and 261 for complete fusion that stores
// the outputs of the convolutions that end blocks. The Program with these outputs moves more than 261: our
// own kernel reads each end's mask, and the last end's sums are a separate pass. Without them a block's end
// saves 20 tensors of its convolution's input, 2.7 in all blocks, on Hopper: 17 passes become 12 forward, 27
// become 12 backward. The four shortcuts' convolutions save 22 MB more in the same way. Images/s of plain
// convolutions and fused norms, by hand and without those 14 MB: 11463 on an H200, 4328 on an A100, 1915 on a
// V100.
TEST(Plans, MemoryAndTraffic) {
  constexpr std::int64_t kPerDevice = 128;
  std::vector<TextRow> rows{
      {"network", "target", "precision", "plan", "MB per image", "images/s", "planned MiB"}};
  const auto add = [&](const Graph& graph, const std::string& gpu, const DescribeOptions& options,
                       const std::string& plan) {
    const Program program = describe(graph, options, target(gpu));
    const Roofline total = roofline(program, target(gpu), options.precision);
    rows.push_back({graph.model, gpu, std::string(name_of(options.precision)), plan,
                    fmt::format("{:.1f}", total.bytes / kPerDevice / 1e6),
                    fmt::format("{:.0f}", kPerDevice / total.seconds),
                    fmt::format("{:.0f}", static_cast<double>(plan_memory(program).arena_bytes) / 0x1p20)});
  };
  const Graph resnet50 = make_resnet50({.batch = kPerDevice, .image_size = 224});
  for (const char* gpu : {"v100-16gb", "t4", "a100-40gb", "h100", "h200", "b200", "rtx-pro-6000"})
    for (const bool fuse : {false, true})
      for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16})
        if (target(gpu).flops_per_second.contains(precision))
          add(resnet50, gpu, {.precision = precision, .fuse = fuse}, fuse ? "fused" : "");
  for (const char* gpu : {"a100-40gb", "h200", "b200"})
    for (const auto& [plan, patterns] :
         {std::pair("plain ends", Patterns{FusedPattern::block_end_gradient, FusedPattern::product_norm}),
          std::pair("plain sums", Patterns{FusedPattern::block_end_sums, FusedPattern::product_norm}),
          std::pair("stored outputs", Patterns{FusedPattern::product_norm})})
      add(resnet50, gpu, without(resnet50, patterns), plan);
  DescribeOptions fp32_head = kHalf;
  fp32_head.fp32_head = true;
  add(make_arcface({.batch = kPerDevice}), "h200", fp32_head, "fp32 head");
  const Graph y1 = make_arcface({.backbone = kMobileFaceNet, .batch = kPerDevice, .embedding = 128});
  add(y1, "h200", fp32_head, "fp32 head");
  add(y1, "v100-16gb", {}, "");
  expect_golden("plans/memory_and_traffic.txt", padded_table(rows, "llllllrrr"));
}

}  // namespace
}  // namespace plumb
