// Whole training steps of ResNet-50 on the emulated GPU against PyTorch: the case of 64 pixels of
// data/resnet50_pytorch.json, which the CPU device answers in tests/kernels/pytorch_parity_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "models/resnet50.h"
#include "tests/cuda_host/train.h"
#include "tests/kernels/closed_form.h"

namespace plumb {
namespace {

struct Case {
  Graph graph;
  TrainOptions options;
  std::vector<double> losses;  // PyTorch's, in fp64
};

Case read_case() {
  std::ifstream file(PLUMB_TEST_DATA "/resnet50_pytorch.json");
  const nlohmann::json document = nlohmann::json::parse(file);
  for (const nlohmann::json& entry : document.at("cases")) {
    if (entry.at("name") != "bs4_64px") continue;
    return {.graph = make_resnet50({.batch = entry.at("batch"),
                                    .image_size = entry.at("image_size"),
                                    .label_smoothing = document.at("label_smoothing")}),
            .options = {.rule = {.momentum = document.at("momentum"),
                                 .weight_decay = document.at("weight_decay")},
                        .learning_rate = entry.at("learning_rate"),
                        .iterations = entry.at("steps")},
            .losses = entry.at("losses_fp64")};
  }
  throw std::runtime_error("resnet50_pytorch.json has no case bs4_64px");
}

void expect_losses(const Case& expected, double first, double later) {
  const GraphRun run = train_on_gpu(expected.graph, closed_form_tensors(expected.graph), expected.options);
  ASSERT_EQ(run.losses.size(), expected.losses.size());
  for (std::size_t i = 0; i < run.losses.size(); ++i)
    EXPECT_NEAR(run.losses[i], expected.losses[i], (i == 0 ? first : later) * expected.losses[i])
        << "step " << i;
}

TEST(CudaPyTorchParity, Fp32StepsMatch) {
  Case expected = read_case();
  expected.options.capture = true;
  expect_losses(expected, 1e-4, 5e-4);
}

// Rounding to 11 and to 8 bits at every layer; the losses of a broken step are off by more than that.
TEST(CudaPyTorchParity, Fp16StepsStayNearFusedOrNot) {
  Case expected = read_case();
  expected.options.precision = Precision::fp16;
  expected.options.rule.loss_scaling = {.kind = LossScaling::Kind::fixed, .initial = 128};
  for (const bool fuse : {true, false}) {
    expected.options.fuse = fuse;
    expect_losses(expected, 5e-3, 5e-3);
  }
}

TEST(CudaPyTorchParity, Bf16StepsStayNear) {
  Case expected = read_case();
  expected.options.precision = Precision::bf16;
  expect_losses(expected, 2e-2, 2e-2);
}

}  // namespace
}  // namespace plumb
