// Whole steps in bf16 on the CPU device against PyTorch's in fp64.
#include <gtest/gtest.h>

#include "tests/kernels/closed_form.h"
#include "tests/kernels/pytorch_reference.h"

namespace plumb {
namespace {

class CpuBf16 : public testing::Test {
 protected:
  void SetUp() override {
    const auto device = cpu::make_device({.choice = DeviceChoice::cpu});
    if (!device->limits().flops_per_second.contains(Precision::bf16))
      GTEST_SKIP() << "this CPU has neither AVX512_BF16 nor AMX";
  }

  // As far as the emulated GPU's (tests/cuda_host/pytorch_parity_test.cpp).
  static void expect_losses_near_pytorchs(const std::string& file, const std::string& name,
                                          bool fp32_head = false) {
    PyTorchCase reference = read_pytorch_case(file, name);
    reference.options.describe.precision = Precision::bf16;
    reference.options.describe.fp32_head = fp32_head;
    const GraphRun run = run_on_cpu(reference.graph, closed_form_tensors(reference.graph), reference.options);
    const auto expected = reference.expected.at("losses_fp64").get<std::vector<double>>();
    ASSERT_EQ(run.losses.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(run.losses[i], expected[i], 2e-2 * expected[i]) << "step " << i;
  }
};

TEST_F(CpuBf16, StepsOfResNet50StayNearPyTorchs) {
  expect_losses_near_pytorchs("resnet50_pytorch.json", "bs4_64px");
}

TEST_F(CpuBf16, StepsOfR50StayNearPyTorchs) {
  expect_losses_near_pytorchs("arcface_pytorch.json", "r50_bs8_32px");
}

TEST_F(CpuBf16, StepsOfY1WithAnFp32HeadStayNearPyTorchs) {
  expect_losses_near_pytorchs("arcface_pytorch.json", "y1_bs8_112px", true);
}

}  // namespace
}  // namespace plumb
