// Message sizes of the published networks' gradients: results/appendix/allreduce.md.
#include <gtest/gtest.h>

#include <cstdio>

#include "comm/gradient_reduction.h"
#include "kernels/program/describe.h"
#include "kernels/program/targets.h"
#include "models/arcface.h"
#include "models/resnet50.h"
#include "tests/comm/small_program.h"

namespace plumb {
namespace {

using Sizes = std::vector<std::string>;

// "6.5 f16" is 6.5 MiB of f16: a step's buckets for 8 ranks, in reduction order.
Sizes bucket_sizes(const Graph& graph, Precision precision, bool fp32_head = false) {
  const DescribeOptions options{
      .precision = precision, .scale_loss = precision == Precision::fp16, .fp32_head = fp32_head};
  const Program program =
      add_gradient_reduction(describe(graph, options, *find_target("h200")), {.world_size = 8});
  Sizes sizes;
  for (const Instruction& instruction : program.instructions) {
    const auto* collective = instruction.as<Collective>();
    if (!collective || !instruction.name.starts_with("bucket")) continue;
    char text[32];
    std::snprintf(text, sizeof text, "%.1f ",
                  static_cast<double>(collective->elements * bytes_of(collective->dtype)) / (1 << 20));
    sizes.push_back(text + std::string(name_of(collective->dtype)));
  }
  return sizes;
}

Graph faces(Backbone backbone) {
  return make_arcface({.backbone = backbone, .batch = 2, .head = Head::sharded, .world_size = 8});
}

TEST(BucketSizes, OfResNet50EndWithASmallOne) {
  const Graph graph = make_resnet50({.batch = 2, .image_size = 64});
  EXPECT_EQ(bucket_sizes(graph, Precision::fp16),
            (Sizes{"10.4 f16", "21.0 f16", "12.6 f16", "3.7 f16", "0.2 f32", "0.9 f16"}));
  EXPECT_EQ(bucket_sizes(graph, Precision::fp32),
            (Sizes{"20.8 f32", "17.0 f32", "16.0 f32", "23.8 f32", "15.1 f32", "3.7 f32", "1.0 f32"}));
}

TEST(BucketSizes, OfFaceBackbonesEndWithASmallOne) {
  EXPECT_EQ(
      bucket_sizes(faces(kIResNet50), Precision::fp16, true),
      (Sizes{"0.0 f32", "49.0 f32", "13.5 f16", "25.0 f16", "15.8 f16", "3.4 f16", "0.2 f32", "0.9 f16"}));
  EXPECT_EQ(bucket_sizes(faces(kIResNet100), Precision::fp16, true),
            (Sizes{"0.0 f32", "49.0 f32", "4.5 f16", "25.0 f16", "24.8 f16", "24.8 f16", "15.8 f16",
                   "3.9 f16", "0.3 f32", "0.9 f16"}));
  EXPECT_EQ(bucket_sizes(faces(kIResNet50), Precision::fp32, true),
            (Sizes{"0.0 f32", "49.0 f32", "9.0 f32", "18.0 f32", "23.0 f32", "22.5 f32", "24.8 f32",
                   "15.3 f32", "3.7 f32", "0.9 f32"}));
  EXPECT_EQ(bucket_sizes(faces(kIResNet100), Precision::fp32, true),
            (Sizes{"0.0 f32", "49.0 f32", "18.0 f32", "18.0 f32", "20.8 f32", "24.8 f32", "24.8 f32",
                   "24.8 f32", "24.8 f32", "24.8 f32", "14.2 f32", "3.7 f32", "0.9 f32"}));
}

}  // namespace
}  // namespace plumb
