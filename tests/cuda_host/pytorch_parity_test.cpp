// Whole training steps of ResNet-50 and IResNet-50 on the emulated GPU against PyTorch: the small-image
// cases, which tests/kernels/pytorch_parity_test.cpp runs on the CPU device.
#include <gtest/gtest.h>

#include "tests/cuda_host/train.h"
#include "tests/kernels/closed_form.h"
#include "tests/kernels/pytorch_reference.h"

namespace plumb {
namespace {

struct Case {
  Graph graph;
  TrainOptions options;
  std::vector<double> losses;  // PyTorch's, in fp64
};

Case read_case(const std::string& file = "resnet50_pytorch.json", const std::string& name = "bs4_64px") {
  const PyTorchCase reference = read_pytorch_case(file, name);
  return {.graph = reference.graph,
          .options = {.rule = reference.options.rule,
                      .learning_rate = reference.options.learning_rate,
                      .iterations = reference.options.iterations},
          .losses = reference.expected.at("losses_fp64")};
}

void expect_losses(const Case& expected, double first, double later) {
  const GraphRun run = train_on_gpu(expected.graph, closed_form_tensors(expected.graph), expected.options);
  ASSERT_EQ(run.losses.size(), expected.losses.size());
  for (std::size_t i = 0; i < run.losses.size(); ++i)
    EXPECT_NEAR(run.losses[i], expected.losses[i], (i == 0 ? first : later) * expected.losses[i])
        << "step " << i;
}

// All steps in NHWC, two in NCHW.
void expect_fp32_losses(Case expected) {
  expected.options.capture = true;
  expected.options.layout = TensorLayout::nhwc;
  expect_losses(expected, 1e-4, 5e-4);
  expected.options.layout = TensorLayout::nchw;
  expected.options.iterations = 2;
  expected.losses.resize(2);
  expect_losses(expected, 1e-4, 5e-4);
}

TEST(CudaPyTorchParity, Fp32StepsMatch) {
  expect_fp32_losses(read_case());
}

TEST(CudaPyTorchParity, Fp32StepsOfR50Match) {
  expect_fp32_losses(read_case("arcface_pytorch.json", "r50_bs8_32px"));
}

// Rounding to 11 and to 8 bits at every layer; losses of a broken step are off by more.
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
