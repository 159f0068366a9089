#include <gtest/gtest.h>

#include "tests/bench/parsed_options.h"

namespace plumb {
namespace {

DeviceLimits a_cpu() {
  return {.name = "some cpu", .kind = DeviceKind::cpu, .flops_per_second = {{Precision::fp32, 1e11}}};
}

DeviceLimits a_gpu() {
  return {.name = "some gpu",
          .kind = DeviceKind::cuda,
          .flops_per_second = {{Precision::fp32, 1e13}, {Precision::fp16, 1e14}}};
}

TEST(BenchOptions, DefaultsAreThoseOfTheDocumentation) {
  const BenchOptions options = parsed_options({});
  EXPECT_EQ(options.iterations, 120);
  EXPECT_EQ(options.warmup, 20);
  EXPECT_EQ(options.weight_decay, 1.0 / 32768);
  EXPECT_EQ(resolve(options, a_cpu(), 1).batch_per_device, 8);
  EXPECT_EQ(resolve(options, a_gpu(), 1).batch_per_device, 128);
}

TEST(BenchOptions, ASingleRankExchangesGradientsOnlyIfACommunicatorIsNamed) {
  BenchOptions options = resolve(parsed_options({}), a_cpu(), 1);
  EXPECT_EQ(options.comm, "auto");
  EXPECT_FALSE(has_collectives(options, 1));
  options = resolve(parsed_options({"--comm", "mpi"}), a_cpu(), 1);
  EXPECT_EQ(options.comm, "mpi");
  EXPECT_TRUE(has_collectives(options, 1));
  options.comm = "nccl";  // which this build lacks
  options = resolve(options, a_gpu(), 1);
  EXPECT_EQ(options.comm, "nccl");
  EXPECT_TRUE(has_collectives(options, 1));
}

TEST(BenchOptions, TwoRanksAlwaysExchangeGradients) {
  for (const std::string comm : {"auto", "mpi"}) {
    const BenchOptions options = resolve(parsed_options({"--comm", comm}), a_cpu(), 2);
    EXPECT_EQ(options.comm, "mpi");
    EXPECT_TRUE(has_collectives(options, 2));
  }
}

TEST(BenchOptions, LossScalingIsDynamicWithFp16AndOffElsewhere) {
  using Kind = LossScaling::Kind;
  EXPECT_EQ(resolve(parsed_options({"--fp16"}), a_gpu(), 1).loss_scaling->kind, Kind::dynamic);
  EXPECT_EQ(resolve(parsed_options({"--fp16", "--loss-scale", "none"}), a_gpu(), 1).loss_scaling->kind,
            Kind::none);
  const LossScaling fixed =
      *resolve(parsed_options({"--fp16", "--loss-scale", "128"}), a_gpu(), 1).loss_scaling;
  EXPECT_EQ(fixed.kind, Kind::fixed);
  EXPECT_EQ(fixed.initial, 128);
  EXPECT_FALSE(resolve(parsed_options({}), a_gpu(), 1).loss_scaling);
}

TEST(BenchOptions, FingerprintTellsDifferentOptionsApart) {
  EXPECT_EQ(options_fingerprint(parsed_options({"--bs", "4"})),
            options_fingerprint(parsed_options({"--batch-per-device", "4"})));
  EXPECT_NE(options_fingerprint(parsed_options({"--bs", "4"})),
            options_fingerprint(parsed_options({"--bs", "5"})));
  EXPECT_NE(options_fingerprint(parsed_options({"--log-dir", "a"})),
            options_fingerprint(parsed_options({"--log-dir", "b"})));
  EXPECT_NE(options_fingerprint(parsed_options({})).find("\nlearning_rate=0.1\n"), std::string::npos);
}

TEST(BenchOptions, ConfigurationHasEveryOption) {
  const nlohmann::ordered_json config = options_json(parsed_options({"--bf16", "--no-overlap", "--bs", "2"}));
  EXPECT_EQ(config.at("precision"), "bf16");
  EXPECT_EQ(config.at("overlap"), false);
  EXPECT_EQ(config.at("batch_per_device"), 2);
  EXPECT_EQ(config.at("run"), nullptr);
  EXPECT_EQ(config.at("decay"), "all");
  EXPECT_EQ(config.begin().key(), "batch_per_device");
  BenchOptions defaults;
  for (const OptionGroup& group : bench_option_table(defaults).groups)
    for (const OptionSpec& spec : group.options)
      EXPECT_TRUE(spec.config_key.empty() || config.contains(spec.config_key)) << spec.names.front();
  EXPECT_GT(config.size(), 40U);
  EXPECT_FALSE(config.contains("help"));
}

TEST(BenchOptions, DefaultsAreThoseThatResultsCallUsual) {
  const nlohmann::ordered_json config = options_json(resolve(default_options("bench_arcface"), a_gpu(), 1));
  EXPECT_EQ(config.at("optimizer"), kDefaults.optimizer);
  EXPECT_EQ(config.at("reduce_dtype"), kDefaults.reduce_dtype);
  EXPECT_EQ(config.at("cuda_graph"), kDefaults.cuda_graph);
  EXPECT_EQ(config.at("fusion"), kDefaults.fusion);
  EXPECT_EQ(config.at("prelu"), kDefaults.prelu);
  EXPECT_EQ(config.at("head_dtype"), kDefaults.head_dtype);
  EXPECT_EQ(options_json(resolve(parsed_options({"--fp16"}), a_gpu(), 1)).at("loss_scale"),
            kDefaults.loss_scale);
}

}  // namespace
}  // namespace plumb
