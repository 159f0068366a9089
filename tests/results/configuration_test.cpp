#include "results/analysis/configuration.h"

#include <gtest/gtest.h>

#include "tests/results/run_folder.h"

namespace plumb {
namespace {

Configuration configuration_of_log(const std::string& file, const Dialect& dialect = kPytorch) {
  return configuration_of(std::get<LogName>(parse_log_name("1n2g", file)), dialect);
}

TEST(Configuration, IsWhatARunSays) {
  const Configuration own = configuration_of(example_face_run(1000));
  EXPECT_EQ(own.framework, "Plumbline");
  EXPECT_EQ(own.device, "NVIDIA H200");
  EXPECT_EQ(own.case_name(), "1n1g");
  EXPECT_EQ(own.head, "pfc 0.1");
  EXPECT_EQ(own.classes, 85742);
  EXPECT_EQ(configuration_text(own),
            "r50 fp16, batch 128 per device, 1n1g, NVIDIA H200, synthetic, head pfc 0.1 of 85742 classes");
}

TEST(Configuration, OfACpuKeepsItsThreadsAndLeavesLibraryVersionsOut) {
  EXPECT_EQ(configuration_of(example_run(32)).device, "some CPU, 1 thread");
  EXPECT_EQ(configuration_text(configuration_of(example_run(32))),
            "resnet50 fp32, batch 8 per device, 1n2g, some CPU, 1 thread, synthetic");
}

TEST(Configuration, OtherWorkIsASettingOfLogs) {
  RunRecord record = example_run(32);
  EXPECT_FALSE(log_settings(record).contains("optimizer"));
  record.config["optimizer"] = "nag";
  record.config["dropout"] = 0.1;
  EXPECT_EQ(log_settings(record).at("optimizer"), "nag");
  EXPECT_EQ(log_settings(record).at("dropout"), "0.1");
  Configuration log;
  for (const auto& [key, value] : log_settings(record)) add_log_setting(key, value, log);
  EXPECT_EQ(log.options, (std::map<std::string, std::string>{{"dropout", "0.1"}, {"optimizer", "nag"}}));
  EXPECT_TRUE(setting_differences(log, configuration_of(record)).empty());
}

TEST(Configuration, NamesEachDifference) {
  RunRecord other = example_run(32);
  other.batch_per_device = 16;
  other.precision = "bf16";
  other.nodes = 2;
  other.devices_per_node = 1;
  other.device_name = "another CPU, 1 thread, oneDNN 2.6.3";
  other.config["data"] = "/data/ImageNet/";
  other.config["optimizer"] = "nag";
  EXPECT_EQ(differences_text(differences(configuration_of(example_run(32)), configuration_of(other))),
            "precision fp32 against bf16, device some CPU, 1 thread against another CPU, 1 thread, "
            "data synthetic against ImageNet, batch per device 8 against 16, nodes 1 against 2, "
            "devices per node 2 against 1, optimizer sgd against nag");
}

TEST(Configuration, LeavesDevicesOutWhereTheirNumberIsWhatOneLooksAt) {
  RunRecord other = example_run(32);
  other.nodes = 4;
  EXPECT_EQ(
      differences(configuration_of(example_run(32)), configuration_of(other), /*device_count=*/false).size(),
      0u);
}

TEST(Configuration, OfALogDiffersFromNothingThatItsNameDoesNotSay) {
  const Configuration log = configuration_of_log("resnet50_b8_fp32_1.log");
  EXPECT_EQ(log.framework, "PyTorch");
  EXPECT_TRUE(differences(log, configuration_of(example_run(32))).empty());
  EXPECT_EQ(
      differences(configuration_of_log("resnet50_b4_fp32_1.log"), configuration_of(example_run(32))).size(),
      1u);
}

TEST(Configuration, KnowsAModelByItsOtherNames) {
  const auto own = [](const char* file) {
    return configuration_of(std::get<LogName>(parse_log_name("1n2g", file)));
  };
  for (const char* name : {"rn50_b8_fp32_1.log", "ResNet50v1.5_b8_FP32_1.log"})
    EXPECT_TRUE(differences(own(name), configuration_of(example_run(32))).empty()) << name;
  EXPECT_EQ(own("resnet50v1b_b8_fp32_1.log").model, "rn50v1b");
  EXPECT_EQ(own("IResNet50_b8_fp32_1.log").model, "r50");
}

// DLPerf's ResNet-50 scripts write r50_b128_fp32_1.log (PyTorch, NGC, Paddle), gluon-cv's
// rn50_b128_fp32_1.log.
TEST(Configuration, OfALogHasTheModelOfItsDialectAndOnlyElseOfItsName) {
  for (const Dialect* dialect : {&kPytorch, &kNgcPytorchTime, &kPaddleSpeed, &kTf2Speed, &kOneflowCnn})
    EXPECT_EQ(configuration_of_log("r50_b128_fp32_1.log", *dialect).model, "resnet50") << dialect->name;
  EXPECT_EQ(configuration_of_log("rn50_b128_fp32_1.log", kMxnetRn50v1b).model, "rn50v1b");
  EXPECT_EQ(configuration_of_log("r50_b128_fp32_1.log", kPlsc).model, "r50");
  EXPECT_EQ(configuration_of_log("r100_b64_fp32_1.log", kOneflowFace).model, "r100");
}

TEST(Configuration, TakesAMakersNameForNoDifference) {
  Configuration one = configuration_of(example_face_run(1000)), other = one;
  one.device = "Tesla V100-SXM2-16GB";
  other.device = "V100-SXM2-16GB";
  EXPECT_TRUE(differences(one, other).empty());
}

TEST(Configuration, KeepsHowTheWorkWasDoneApartFromTheWork) {
  RunRecord other = example_run(32);
  other.config["overlap"] = false;
  other.iterations = 1000;
  other.step_seconds.assign(1000, 0.5);
  other.loss.assign(1000, 7);
  const Configuration a = configuration_of(example_run(32)), b = configuration_of(other);
  EXPECT_TRUE(differences(a, b).empty());
  EXPECT_FALSE(a == b);
  EXPECT_EQ(differences_text(setting_differences(a, b)),
            "iterations as usual against 1000, 20 of them warm-up, overlap as usual against false");
}

TEST(Configuration, ASingleRankThatExchangesGradientsDoesNotDoItsWorkAsUsual) {
  RunRecord one = example_face_run(1000), named = one, older = one;
  one.config["comm"] = "auto";
  named.config["comm"] = older.config["comm"] = "nccl";
  named.exposed_communication_seconds = 0.001;
  EXPECT_TRUE(configuration_of(one) == configuration_of(older));
  EXPECT_EQ(differences_text(setting_differences(configuration_of(one), configuration_of(named))),
            "comm as usual against nccl");
}

TEST(Configuration, TellsDirectConvolutionsFromTheUsualChoice) {
  RunRecord older = example_run(32), usual = older, direct = older;
  usual.config["conv"] = "auto";
  direct.config["conv"] = "direct";
  EXPECT_TRUE(configuration_of(older) == configuration_of(usual));
  EXPECT_EQ(differences_text(setting_differences(configuration_of(usual), configuration_of(direct))),
            "conv as usual against direct");
}

TEST(Configuration, OfRunsOfSoManySecondsIsTheSameWhateverTheirIterations) {
  RunRecord one = example_run(32), other = one;
  one.config["seconds"] = other.config["seconds"] = 60.0;
  other.iterations = 133;
  EXPECT_TRUE(configuration_of(one) == configuration_of(other));
}

}  // namespace
}  // namespace plumb
