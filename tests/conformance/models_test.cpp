// Every layer of the networks that are measured, at their channels, in few and small images.
#include <algorithm>

#include "models/arcface.h"
#include "models/resnet50.h"
#include "tests/conformance/device_under_test.h"

namespace plumb {
namespace {

class Models : public Conformance {
 protected:
  // In one precision, as small networks are checked in all: fp16, or another one that a GPU has; fp32 on a
  // CPU.
  static void expect_step(const Graph& graph, Precision of_gpu = Precision::fp16) {
    const Precision precision = on_gpu() ? of_gpu : Precision::fp32;
    for (const Offer& offer : offers()) {
      if (offer.compute_capability != 0 || !offer.describe.fuse || offer.describe.fp32_head) continue;
      if (offer.describe.precision != precision || !fits(graph, offer)) continue;
      Offer scaled = offer;
      scaled.loss_scale =
          precision == Precision::fp16 ? 0x1p-6F : 1;  // norms over few pixels: large gradients
      expect_conforms(graph, scaled, {}, random_tensors(graph, 7));
    }
  }
};

using LargeModels = Models;

// Two blocks of each stage: the others are like the second one.
TEST_F(Models, ResNet50) {
  constexpr ResNetStage kStages[] = {{2, 64, 1}, {2, 128, 2}, {2, 256, 2}, {2, 512, 2}};
  expect_step(make_resnet50({.batch = 2, .image_size = 32, .classes = 100, .stages = kStages}));
}

TEST_F(LargeModels, IResNet50) {
  expect_step(make_arcface({.batch = 2, .image_size = 32, .classes = 100}));
}

TEST_F(Models, MobileFaceNet) {
  expect_step(make_arcface(
      {.backbone = kMobileFaceNet, .batch = 2, .image_size = 32, .embedding = 128, .classes = 100}));
}

// More blocks than a GPU runs at once, of the layers that move most of ResNet-50's bytes.
TEST_F(Models, FirstStageOfResNet50) {
  constexpr ResNetStage kFirst[] = {{.blocks = 1, .width = 64, .stride = 1}};
  expect_step(
      make_resnet50(
          {.batch = 2, .image_size = under_test().is_fast ? 224 : 64, .classes = 10, .stages = kFirst}),
      Precision::bf16);
}

}  // namespace
}  // namespace plumb
