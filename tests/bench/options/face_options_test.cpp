#include <gtest/gtest.h>

#include "bench/options/options.h"
#include "kernels/program/targets.h"
#include "tests/bench/parsed_options.h"

namespace plumb {
namespace {

BenchOptions parse(const std::vector<std::string>& arguments) {
  return parsed_options(arguments, "bench_arcface");
}

FaceOptions resolved(const std::vector<std::string>& arguments) {
  return resolve(parse(arguments), *find_target("h200"), 1).face;
}

void expect_margins(const std::vector<std::string>& arguments, const Margins& wanted) {
  const Margins margins = *resolved(arguments).margins;
  EXPECT_EQ(margins.m1, wanted.m1);
  EXPECT_EQ(margins.m2, wanted.m2);
  EXPECT_EQ(margins.m3, wanted.m3);
}

TEST(FaceOptions, DefaultsAreThoseOfTheDocumentation) {
  const BenchOptions options = resolve(parse({}), *find_target("h200"), 1);
  EXPECT_EQ(options.iterations, 150);
  EXPECT_EQ(options.warmup, 50);
  EXPECT_EQ(options.image_size, 112);
  EXPECT_EQ(options.batch_per_device, 128);
  EXPECT_EQ(options.learning_rate, 0.01);
  EXPECT_EQ(options.momentum, 0.9);
  EXPECT_EQ(options.weight_decay, 5e-4);
  EXPECT_EQ(options.label_smoothing, 0);
  EXPECT_EQ(options.face.classes, 85742);
  EXPECT_EQ(options.face.head, Head::sharded);
  EXPECT_EQ(options.face.scale, 64);
  EXPECT_EQ(options.face.margin_gradient, MarginLoss::Gradient::exact);
  EXPECT_EQ(options.face.head_dtype, HeadDtype::fp32);
}

TEST(FaceOptions, BackbonesDecideEmbeddingAndDropout) {
  for (const char* backbone : {"r50", "r100"}) {
    EXPECT_EQ(resolved({"--backbone", backbone}).embedding, 512);
    EXPECT_EQ(resolved({"--backbone", backbone}).dropout, 0.4);
  }
  EXPECT_EQ(resolved({"--backbone", "y1"}).embedding, 128);
  EXPECT_EQ(resolved({"--backbone", "y1"}).dropout, 0);
  const FaceOptions own = resolved({"--embedding", "256", "--dropout", "0.1", "--prelu", "layer"});
  EXPECT_EQ(own.embedding, 256);
  EXPECT_EQ(own.dropout, 0.1);
  EXPECT_TRUE(own.prelu_per_layer);
}

TEST(FaceOptions, OnlyTheSampledHeadHasARate) {
  EXPECT_EQ(resolved({"--head", "pfc"}).sample_rate, 0.1);
  EXPECT_EQ(resolved({"--head", "pfc", "--sample-rate", "1"}).sample_rate, 1);
  EXPECT_FALSE(resolved({"--head", "mp"}).sample_rate);
}

TEST(FaceOptions, LossesAreNamesOfMargins) {
  expect_margins({}, {.m1 = 1, .m2 = 0.5, .m3 = 0});
  expect_margins({"--loss", "cosface"}, {.m1 = 1, .m2 = 0, .m3 = 0.4});
  expect_margins({"--loss", "combined"}, {.m1 = 1, .m2 = 0.3, .m3 = 0.2});
  expect_margins({"--margins", "0.9,-0.25,1e-1"}, {.m1 = 0.9, .m2 = -0.25, .m3 = 0.1});
}

TEST(FaceOptions, ConfigurationSaysWhatARunHas) {
  BenchOptions options = parse({"--backbone", "y1", "--head", "pfc", "--loss", "combined"});
  nlohmann::ordered_json config = options_json(options);
  EXPECT_EQ(config.at("embedding"), nullptr) << "of a run that no device has resolved";
  config = options_json(resolve(options, *find_target("h200"), 1));
  EXPECT_EQ(config.at("backbone"), "y1");
  EXPECT_EQ(config.at("embedding"), 128);
  EXPECT_EQ(config.at("prelu"), "channel");
  EXPECT_EQ(config.at("dropout"), 0);
  EXPECT_EQ(config.at("classes"), 85742);
  EXPECT_EQ(config.at("head"), "pfc");
  EXPECT_EQ(config.at("sample_rate"), 0.1);
  EXPECT_EQ(config.at("loss"), "combined");
  EXPECT_EQ(config.at("margins"), nlohmann::ordered_json({1, 0.3, 0.2}));
  EXPECT_EQ(config.at("scale"), 64);
  EXPECT_EQ(config.at("margin_gradient"), "exact");
  EXPECT_EQ(config.at("head_dtype"), "fp32");
  EXPECT_FALSE(config.contains("label_smoothing"));
}

TEST(FaceOptions, RanksWithOtherHeadsDoNotGetTogether) {
  const std::string usual = options_fingerprint(parse({}));
  EXPECT_EQ(usual, options_fingerprint(parse({"--head", "mp", "--margins", "1,0.5,0"})));
  for (const auto& other : std::vector<std::vector<std::string>>{{"--head", "dp"},
                                                                 {"--classes", "85743"},
                                                                 {"--backbone", "r100"},
                                                                 {"--embedding", "256"},
                                                                 {"--margins", "1,0.5,0.1"},
                                                                 {"--scale", "32"},
                                                                 {"--prelu", "layer"},
                                                                 {"--dropout", "0.3"},
                                                                 {"--head-dtype", "same"},
                                                                 {"--head-dtype", "tf32", "--fp16"},
                                                                 {"--margin-gradient", "straight-through"}})
    EXPECT_NE(options_fingerprint(parse(other)), usual) << other.front();
}

}  // namespace
}  // namespace plumb
