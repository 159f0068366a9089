// The device that this program's tests run on, and what it offers.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/checked_program.h"

namespace plumb {

// The tests that a device can take, as a filter of GoogleTest: suites of GPUs' own instructions begin with
// Gpu, those of sizes for a real GPU with Large. In device_cpu.cpp, device_emulated.cpp, device_cuda.cpp.
extern const char* const kTests;

struct DeviceUnderTest {
  std::unique_ptr<Device> device;
  std::vector<int> other_compute_capabilities = {};  // of GPUs whose Programs it runs as well
  bool is_fast = false;  // a real GPU, for tensors of more than one wave of blocks
};
// In the same files. Throws Error(unavailable) where there is none.
DeviceUnderTest make_device_under_test();

// A way to store and compute that the device has.
struct Offer {
  DescribeOptions describe;
  int compute_capability = 0;  // described for this GPU; 0: the device itself
  std::string name;            // "fp16", "fp16 unfused"
  float loss_scale = 1;
};

class Conformance : public testing::Test {
 protected:
  static void SetUpTestSuite() { under_test() = make_device_under_test(); }
  static void TearDownTestSuite() { under_test() = {}; }

  static DeviceUnderTest& under_test();
  static Device* device() { return under_test().device.get(); }
  static bool on_gpu() { return device()->limits().kind == DeviceKind::cuda; }

  // Every precision; of GPUs also unfused, and as described for GPUs that the device can stand for.
  static std::vector<Offer> offers();
  // The dtypes of activations: for Programs made by hand.
  static std::vector<DType> storages();

  static Doubles to_doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

  struct Steps {
    UpdateRule rule = {.momentum = 0.875, .weight_decay = 0.05};
    int iterations = 1;
    std::uint64_t first_sample = 0;
    float learning_rate = 0.03F;
    bool on_other_gpus = false;  // also as described for these
  };
  // Whether the device describes the Graph so: on a GPU channels of NHWC come in eights.
  static bool fits(const Graph& graph, const Offer& offer);
  // Trains the Graph on random tensors with every offer that fits, each instruction against the reference.
  static void expect_conforms(const Graph& graph, const Steps& steps, const TestTensors& tensors);
  static void expect_conforms(const Graph& graph, const Steps& steps);
  static void expect_conforms(const Graph& graph) { expect_conforms(graph, Steps{}); }
  static void expect_conforms(const Graph& graph, const Offer& offer, const Steps& steps,
                              const TestTensors& tensors);
};

}  // namespace plumb
