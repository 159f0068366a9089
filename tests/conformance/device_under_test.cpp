#include "tests/conformance/device_under_test.h"

#include <algorithm>

#include "kernels/program/describe.h"

namespace plumb {

DeviceUnderTest& Conformance::under_test() {
  static DeviceUnderTest under_test;  // one per test suite: making a GPU's library handles takes a while
  return under_test;
}

std::vector<Offer> Conformance::offers() {
  std::vector<Offer> offers;
  const DeviceLimits& limits = device()->limits();
  const auto add = [&](std::string name, Precision precision) -> Offer& {
    offers.push_back({.describe = {.precision = precision}, .name = std::move(name)});
    if (precision == Precision::fp16)
      offers.back().loss_scale = 256, offers.back().describe.scale_loss = true;
    return offers.back();
  };
  if (!on_gpu()) {
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      if (!limits.flops_per_second.contains(precision)) continue;
      const std::string name(name_of(precision));
      add(name, precision).describe.winograd = Winograd::never;
      if (limits.winograd_lanes > 0)
        add(name + " winograd", precision).describe.winograd = Winograd::everywhere;
    }
    return offers;
  }
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16})
    if (limits.flops_per_second.contains(precision)) add(std::string(name_of(precision)), precision);
  add("fp16 unfused", Precision::fp16).describe.fuse = false;
  add("fp16, fp32 head", Precision::fp16).describe.fp32_head = true;
  for (const int capability : under_test().other_compute_capabilities)
    add("fp16 as on sm_" + std::to_string(capability), Precision::fp16).compute_capability = capability;
  return offers;
}

std::vector<DType> Conformance::storages() {
  if (on_gpu()) return {DType::f32, DType::f16, DType::bf16};
  std::vector<DType> storages{DType::f32};
  if (device()->limits().flops_per_second.contains(Precision::bf16)) storages.push_back(DType::bf16);
  return storages;
}

bool Conformance::fits(const Graph& graph, const Offer& offer) {
  if (offer.describe.fp32_head && graph.head_begin == 0) return false;
  if (!on_gpu()) return true;
  return std::ranges::all_of(graph.ops, [&](const Op& op) {
    if (const Conv* conv = std::get_if<Conv>(&op)) {
      const std::int64_t in = graph.values[conv->in].shape.c, out = graph.values[conv->out].shape.c;
      return out % 8 == 0 && (conv->in == 0 || in % 8 == 0);
    }
    if (const Dense* dense = std::get_if<Dense>(&op))  // images have more channels in memory
      return dense->in != 0 || graph.values[0].shape.h * graph.values[0].shape.w == 1;
    if (std::holds_alternative<SoftmaxLoss>(op) || std::holds_alternative<MarginLoss>(op)) return true;
    const Shape& in = graph.values[std::visit([](const auto& one) { return one.in; }, op)].shape;
    return in.c % 8 == 0;
  });
}

void Conformance::expect_conforms(const Graph& graph, const Offer& offer, const Steps& steps,
                                  const TestTensors& tensors) {
  SCOPED_TRACE(offer.name);
  DeviceLimits limits = device()->limits();
  if (offer.compute_capability != 0) limits.compute_capability = offer.compute_capability;
  UpdateRule rule = steps.rule;
  if (offer.loss_scale != 1) rule.loss_scaling = {.kind = LossScaling::Kind::dynamic, .growth_interval = 2};
  DescribeOptions options = offer.describe;
  if (on_gpu()) options.plain = device()->tune(graph, rule, options, {.time_engines = false}).plain;
  CheckedProgram program(*device(), graph, rule, describe(graph, options, limits));
  program.write(tensors);
  program.write({.first_sample = steps.first_sample,
                 .learning_rate = steps.learning_rate,
                 .loss_scale = offer.loss_scale});
  for (int i = 0; i < steps.iterations && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(testing::Message() << "iteration " << i);
    program.check_step();
  }
}

void Conformance::expect_conforms(const Graph& graph, const Steps& steps, const TestTensors& tensors) {
  for (const Offer& offer : offers())
    if (fits(graph, offer) && (offer.compute_capability == 0 || steps.on_other_gpus))
      expect_conforms(graph, offer, steps, tensors);
}

void Conformance::expect_conforms(const Graph& graph, const Steps& steps) {
  expect_conforms(graph, steps, random_tensors(graph, 7));
}

}  // namespace plumb
