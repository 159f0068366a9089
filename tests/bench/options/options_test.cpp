#include "bench/options/options.h"

#include <gtest/gtest.h>

#include "tests/bench/expect_error.h"

namespace plumb {
namespace {

BenchOptions parse(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"bench_resnet50"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  return parse_options(static_cast<int>(argv.size()), argv.data());
}

DeviceLimits a_cpu() {
  return {.name = "some cpu", .kind = DeviceKind::cpu, .flops_per_second = {{Precision::fp32, 1e11}}};
}

DeviceLimits a_gpu() {
  return {.name = "some gpu",
          .kind = DeviceKind::cuda,
          .flops_per_second = {{Precision::fp32, 1e13}, {Precision::fp16, 1e14}}};
}

TEST(BenchOptions, DefaultsAreThoseOfTheDocumentation) {
  const BenchOptions options = parse({});
  EXPECT_EQ(options.iterations, 120);
  EXPECT_EQ(options.warmup, 20);
  EXPECT_EQ(options.weight_decay, 1.0 / 32768);
  EXPECT_EQ(resolve(options, a_cpu(), 1).batch_per_device, 8);
  EXPECT_EQ(resolve(options, a_gpu(), 1).batch_per_device, 128);
}

TEST(BenchOptions, ThatMeasureMoreAreOffUnlessGiven) {
  const BenchOptions none = parse({}), all = parse({"--profile", "--trace", "--find-max-bs"});
  EXPECT_FALSE(none.profile || none.trace || none.find_max_bs);
  EXPECT_TRUE(all.profile && all.trace && all.find_max_bs);
  EXPECT_EQ(options_json(all).at("profile"), true);
}

TEST(BenchOptions, AcceptsABatchThatOnlyThePlanCanRefuse) {
  EXPECT_EQ(parse({"--bs", "1000000"}).batch_per_device, 1000000);
}

TEST(BenchOptions, APrecisionThatTheDeviceLacksIsRefusedWithThoseItHas) {
  expect_error(ExitCode::usage, {"--fp16", "some cpu", "--fp32"},
               [] { resolve(parse({"--fp16"}), a_cpu(), 1); });
  EXPECT_EQ(resolve(parse({"--fp16"}), a_gpu(), 1).precision, Precision::fp16);
}

TEST(BenchOptions, OnlyACpuChoosesBetweenConvolutions) {
  EXPECT_EQ(resolve(parse({"--conv", "direct"}), a_cpu(), 1).winograd, Winograd::never);
  EXPECT_EQ(resolve(parse({}), a_cpu(), 1).winograd, Winograd::where_faster);
  EXPECT_EQ(options_json(parse({"--conv", "direct"})).at("conv"), "direct");
  expect_error(ExitCode::usage, {"--conv", "direct", "some gpu"}, [] {
    resolve(parse({"--conv", "direct"}), a_gpu(), 1);
  });
}

TEST(BenchOptions, OnlyAGpuHasALayoutToChoose) {
  EXPECT_EQ(resolve(parse({"--layout", "nchw"}), a_gpu(), 1).layout, TensorLayout::nchw);
  EXPECT_EQ(resolve(parse({"--layout", "nhwc", "--fp16"}), a_gpu(), 1).layout, TensorLayout::nhwc);
  EXPECT_FALSE(resolve(parse({"--layout", "auto"}), a_cpu(), 1).layout);
  EXPECT_EQ(options_json(parse({"--layout", "nchw"})).at("layout"), "nchw");
  for (const char* layout : {"nchw", "nhwc"})
    expect_error(ExitCode::usage, {"--layout", layout, "some cpu", "leave it out"}, [&] {
      resolve(parse({"--layout", layout}), a_cpu(), 1);
    });
}

TEST(BenchOptions, OnlyAGpuCapturesItsStepTunesForEnergyOrSpeaksNccl) {
  expect_error(ExitCode::usage, {"--cuda-graph", "some cpu"}, [] {
    resolve(parse({"--cuda-graph", "on"}), a_cpu(), 1);
  });
  EXPECT_EQ(resolve(parse({"--cuda-graph", "on"}), a_gpu(), 1).cuda_graph, CudaGraph::on);
  expect_error(ExitCode::usage, {"--tune-for", "'energy'", "some cpu", "leave it out"}, [] {
    resolve(parse({"--tune-for", "energy"}), a_cpu(), 1);
  });
  EXPECT_EQ(resolve(parse({"--tune-for", "energy"}), a_gpu(), 1).tune_for, TuneFor::energy);
  expect_error(ExitCode::unavailable, {"--comm", "nccl", "without NCCL"}, [] { parse({"--comm", "nccl"}); });
  BenchOptions options;
  options.comm = "nccl";
  expect_error(ExitCode::usage, {"--comm", "nccl", "some cpu"}, [&] { resolve(options, a_cpu(), 1); });
}

TEST(BenchOptions, ASingleRankExchangesGradientsOnlyIfACommunicatorIsNamed) {
  BenchOptions options = resolve(parse({}), a_cpu(), 1);
  EXPECT_EQ(options.comm, "auto");
  EXPECT_FALSE(has_collectives(options, 1));
  options = resolve(parse({"--comm", "mpi"}), a_cpu(), 1);
  EXPECT_EQ(options.comm, "mpi");
  EXPECT_TRUE(has_collectives(options, 1));
  options.comm = "nccl";  // which this build lacks
  options = resolve(options, a_gpu(), 1);
  EXPECT_EQ(options.comm, "nccl");
  EXPECT_TRUE(has_collectives(options, 1));
}

TEST(BenchOptions, TwoRanksAlwaysExchangeGradients) {
  for (const std::string comm : {"auto", "mpi"}) {
    const BenchOptions options = resolve(parse({"--comm", comm}), a_cpu(), 2);
    EXPECT_EQ(options.comm, "mpi");
    EXPECT_TRUE(has_collectives(options, 2));
  }
}

TEST(BenchOptions, LossScalingIsDynamicWithFp16AndOffElsewhere) {
  using Kind = LossScaling::Kind;
  EXPECT_EQ(resolve(parse({"--fp16"}), a_gpu(), 1).loss_scaling->kind, Kind::dynamic);
  EXPECT_EQ(resolve(parse({"--fp16", "--loss-scale", "none"}), a_gpu(), 1).loss_scaling->kind, Kind::none);
  const LossScaling fixed = *resolve(parse({"--fp16", "--loss-scale", "128"}), a_gpu(), 1).loss_scaling;
  EXPECT_EQ(fixed.kind, Kind::fixed);
  EXPECT_EQ(fixed.initial, 128);
  EXPECT_FALSE(resolve(parse({}), a_gpu(), 1).loss_scaling);
}

TEST(BenchOptions, FingerprintTellsDifferentOptionsApart) {
  EXPECT_EQ(options_fingerprint(parse({"--bs", "4"})),
            options_fingerprint(parse({"--batch-per-device", "4"})));
  EXPECT_NE(options_fingerprint(parse({"--bs", "4"})), options_fingerprint(parse({"--bs", "5"})));
  EXPECT_NE(options_fingerprint(parse({"--log-dir", "a"})), options_fingerprint(parse({"--log-dir", "b"})));
  EXPECT_NE(options_fingerprint(parse({})).find("\nlearning_rate=0.1\n"), std::string::npos);
}

TEST(BenchOptions, ConfigurationHasEveryOption) {
  const nlohmann::ordered_json config = options_json(parse({"--bf16", "--no-overlap", "--bs", "2"}));
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
  EXPECT_EQ(config.at("layout"), kDefaults.layout);
  EXPECT_EQ(config.at("prelu"), kDefaults.prelu);
  EXPECT_EQ(config.at("head_dtype"), kDefaults.head_dtype);
  EXPECT_EQ(options_json(resolve(parse({"--fp16"}), a_gpu(), 1)).at("loss_scale"), kDefaults.loss_scale);
}

}  // namespace
}  // namespace plumb
