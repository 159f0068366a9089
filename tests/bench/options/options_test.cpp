#include "bench/options/options.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/bench/expect_error.h"

namespace plumb {
namespace {

BenchOptions parse(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"bench_resnet50"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  return parse_options(static_cast<int>(argv.size()), argv.data());
}

void expect_refused(const std::vector<std::string>& arguments, const std::vector<std::string>& words,
                    ExitCode code = ExitCode::usage) {
  SCOPED_TRACE(arguments.front());
  expect_error(code, words, [&] { parse(arguments); });
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

TEST(BenchOptions, TellsWhichTargetTheFirstWordsOfANameMean) {
  EXPECT_EQ(parse({"--dry-run", "--target", "v100"}).target, "v100");
  EXPECT_EQ(target_note("v100"), "--target v100: matches v100-16gb, v100-32gb; using v100-16gb");
  EXPECT_EQ(target_note("rtx"), "--target rtx: matches rtx-pro-6000; using rtx-pro-6000");
  for (const char* whole : {"v100-16gb", "h100", ""}) EXPECT_EQ(target_note(whole), "");
}

TEST(BenchOptions, RefusesTheBadInputsOneByOne) {
  expect_refused({"--bs", "0"}, {"--bs", "'0'", "from 1 to"});
  expect_refused({"--bs", "abc"}, {"--bs", "'abc'", "whole number"});
  expect_refused({"--warmup", "120", "--iters", "120"}, {"--warmup 120", "--iters 120"});
  expect_refused({"--warmup", "5", "--iters", "5", "--seconds", "10"}, {"--warmup 5"});
  expect_refused({"--fp16", "--fp32"}, {"--fp16", "--fp32", "one precision"});
  expect_refused({"--iter", "5"}, {"option --iter: no such option", "--iters"});
  expect_refused({"--batch-size", "5"}, {"option --batch-size: no such option; did you mean --bs?"});
  expect_refused({"--learning-rate=1"}, {"option --learning-rate: no such option; did you mean --lr?"});
  expect_refused({"--batch", "b.safetensors", "--data", "/images"}, {"--batch", "--data"});
  expect_refused({"--target", "h100"}, {"option --target: h100", "--dry-run"});
  expect_refused({"--dry-run", "--target", "abacus"}, {"--target", "'abacus'", "h100", "v100-16gb"});
  expect_refused({"--conv", "winograd"}, {"--conv", "'winograd'", "auto, direct"});
  expect_refused({"--comm", "pigeon"}, {"--comm", "'pigeon'", "auto, nccl, mpi"});
  expect_refused({"--comm", "nccl"}, {"--comm", "nccl", "without NCCL"}, ExitCode::unavailable);
  expect_refused({"--cuda-graph", "on", "--comm", "mpi"},
                 {"--cuda-graph", "'on'", "--comm mpi", "--comm nccl"});
  expect_refused({"--cuda-graph", "on", "--share-gpu"}, {"--cuda-graph", "'on'", "--share-gpu"});
  expect_refused({"--fp16", "--loss-scale", "0"}, {"--loss-scale", "'0'", "above 0"});
  expect_refused({"--fp16", "--loss-scale", "much"}, {"--loss-scale", "'much'"});
  expect_refused({"--bf16", "--loss-scale", "128"}, {"--loss-scale", "--fp16 only", "bf16"});
  expect_refused({"--layout", "chwn"}, {"--layout", "'chwn'", "auto, nhwc, nchw"});
  for (const char* precision : {"--tf32", "--fp16", "--bf16"})
    expect_refused({precision, "--layout", "nchw"},
                   {"--layout", "'nchw'", "--fp32", precision + 2, "leave it"});
  for (const char* without : {"--no-autotune", "--deterministic"})
    expect_refused({"--tune-for", "energy", without}, {"--tune-for", "'energy'", without, "leave"});
  expect_refused({"--lr", "nan"}, {"--lr", "'nan'"});
  expect_refused({"stray"}, {"'stray'"});
}

TEST(BenchOptions, ThatMeasureMoreAreOffUnlessGiven) {
  const BenchOptions none = parse({}), all = parse({"--profile", "--trace", "--find-max-bs"});
  EXPECT_FALSE(none.profile || none.trace || none.find_max_bs);
  EXPECT_TRUE(all.profile && all.trace && all.find_max_bs);
  EXPECT_EQ(options_json(all).at("profile"), true);
  expect_refused({"--find-max-bs", "--bs", "8"}, {"--find-max-bs", "--bs 8", "exclude each other"});
  expect_refused({"--nodes", "65536", "--devices-per-node", "65536", "--dry-run"},
                 {"--nodes 65536", "--devices-per-node 65536", "4294967296", "262144"});
  expect_refused({"--find-max-bs", "--dry-run"}, {"--find-max-bs", "--dry-run", "exclude each other"});
  expect_refused({"--find-max-bs", "--batch", "b.safetensors"}, {"--find-max-bs", "--batch"});
}

TEST(BenchOptions, LinksAreAskedAboutInADryRunOverSeveralNodes) {
  const BenchOptions asked = parse({"--dry-run", "--nodes", "4", "--link-gbps", "100", "--link-us", "5"});
  EXPECT_EQ(asked.link_gbps, 100);
  EXPECT_EQ(asked.link_us, 5);
  expect_refused({"--link-gbps", "100", "--nodes", "4"}, {"--link-gbps", "--dry-run"});
  expect_refused({"--link-gbps", "100", "--dry-run"}, {"--link-gbps", "--nodes"});
  expect_refused({"--link-us", "5", "--dry-run", "--nodes", "2"}, {"--link-us", "--link-gbps"});
  expect_refused({"--link-gbps", "0", "--dry-run", "--nodes", "2"}, {"--link-gbps", "'0'", "above 0"});
  EXPECT_TRUE(parse({}).probe);
  EXPECT_FALSE(parse({"--no-probe"}).probe);
}

TEST(BenchOptions, DecodesAloneOnlyWhatIsEncoded) {
  EXPECT_FALSE(parse({"--data", "photos"}).decode_only);
  EXPECT_TRUE(parse({"--decode-only", "--data", "photos"}).decode_only);
  expect_refused({"--decode-only"}, {"--decode-only", "--data FOLDER"});
  expect_refused({"--decode-only", "--data", "x.rec", "--dry-run"}, {"--decode-only", "--dry-run"});
  expect_refused({"--decode-only", "--data", "x.rec", "--find-max-bs"}, {"--decode-only", "--find-max-bs"});
  expect_refused({"--data", "photos", "--data-workers", "0"}, {"--data-workers", "'0'"});
  expect_refused({"--data", "photos", "--decode", "gpu"}, {"--decode gpu: CPUs decode all images"});
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

TEST(BenchOptions, QuestionsAreAnsweredWithoutOtherChecks) {
  EXPECT_TRUE(parse({"--help", "--bs", "abc"}).help);
  EXPECT_TRUE(parse({"--version"}).version);
  const BenchOptions both = parse({"--version", "--json"});
  EXPECT_TRUE(both.version && both.json);
  EXPECT_TRUE(parse({"--list-targets"}).list_targets);
  EXPECT_EQ(parse({"--completions", "bash"}).completions, "bash");
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

TEST(BenchOptions, HelpFitsAHundredColumns) {
  std::istringstream lines(options_help());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
  EXPECT_NE(options_help().find("(default: 128 on cuda, 8 on cpu)"), std::string::npos);
}

}  // namespace
}  // namespace plumb
