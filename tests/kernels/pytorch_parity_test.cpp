// Whole training steps of ResNet-50, IResNet-50 and MobileFaceNet on the CPU device against PyTorch.
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <tuple>

#include "tests/kernels/closed_form.h"
#include "tests/kernels/pytorch_reference.h"

namespace plumb {
namespace {

constexpr const char* kResNet50 = "resnet50_pytorch.json";
constexpr const char* kArcFace = "arcface_pytorch.json";

double sum(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

void expect_parity(const std::string& file, const std::string& name) {
  const PyTorchCase reference = read_pytorch_case(file, name);
  const TestTensors tensors = closed_form_tensors(reference.graph);
  ASSERT_NEAR(sum(tensors.images), reference.expected.at("images_sum").get<double>(), 1e-2);
  expect_pytorchs_training(reference, run_on_cpu(reference.graph, tensors, reference.options));
}

TEST(PyTorchParity, BothSidesStartFromTheSameTensors) {
  std::ifstream file(std::string(PLUMB_TEST_DATA "/") + kResNet50);
  const double parameters_sum = nlohmann::json::parse(file).at("parameters_sum");
  const PyTorchCase reference = read_pytorch_case(kResNet50, "bs4_64px");
  double parameters = 0;
  for (const auto& parameter : closed_form_tensors(reference.graph).parameters) parameters += sum(parameter);
  // Sums of bit-identical fp32 values in another order.
  EXPECT_NEAR(parameters, parameters_sum, 1e-5);
}

TEST(PyTorchParity, FourStepsOf224PixelsMatch) {
  expect_parity(kResNet50, "bs2_224px");
}

TEST(PyTorchParity, FourStepsOfR50Match) {
  expect_parity(kArcFace, "r50_bs4_112px");
}

TEST(PyTorchParity, FourStepsOfY1WithACombinedMarginMatch) {
  expect_parity(kArcFace, "y1_bs8_112px");
}

// As far as the emulated GPU's (tests/cuda_host/pytorch_parity_test.cpp).
TEST(CpuBf16, StepsStayNearPyTorchs) {
  if (!cpu::make_device({.choice = DeviceChoice::cpu})->limits().flops_per_second.contains(Precision::bf16))
    GTEST_SKIP() << "this CPU has neither AVX512_BF16 nor AMX";
  for (const auto& [file, name, fp32_head] : {std::tuple(kResNet50, "bs4_64px", false),
                                              {kArcFace, "r50_bs8_32px", false},
                                              {kArcFace, "y1_bs8_112px", true}}) {
    SCOPED_TRACE(name);
    PyTorchCase reference = read_pytorch_case(file, name);
    reference.options.describe.precision = Precision::bf16;
    reference.options.describe.fp32_head = fp32_head;
    const GraphRun run = run_on_cpu(reference.graph, closed_form_tensors(reference.graph), reference.options);
    expect_pytorchs_losses(reference, run, 2e-2, 2e-2);
  }
}

// Nesterov's momentum as torch.optim.SGD has it, over two steps on one batch.
TEST(UpdateRule, NagLooksAheadByTheMomentum) {
  GraphBuilder b({2, 1, 1, 3});
  const Graph graph = b.loss(b.dense(GraphBuilder::kImages, 4));
  const TestTensors tensors = random_tensors(graph, 1);
  constexpr double kMomentum = 0.5, kDecay = 0.1, kRate = 0.25;
  const auto run = [&](int iterations) {
    return run_on_cpu(
        graph, tensors,
        {.rule = {Optimizer::nag, kMomentum, kDecay}, .learning_rate = kRate, .iterations = iterations});
  };
  const GraphRun once = run(1), twice = run(2);
  for (std::size_t p = 0; p < graph.parameters.size(); ++p)
    for (std::size_t i = 0; i < tensors.parameters[p].size(); ++i) {
      double weight = tensors.parameters[p][i], velocity = 0;
      for (const double gradient : {once.gradients[p][i], twice.gradients[p][i]}) {
        const double decayed = gradient + kDecay * weight;
        velocity = kMomentum * velocity + decayed;
        weight -= kRate * (decayed + kMomentum * velocity);
      }
      EXPECT_NEAR(twice.parameters[p][i], weight, 1e-6) << graph.parameters[p].name << " " << i;
    }
}

}  // namespace
}  // namespace plumb
