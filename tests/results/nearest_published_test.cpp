#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "results/published/published.h"
#include "results/record/gpu_name.h"

namespace plumb {
namespace {

const std::string kHead =
    "source,framework,framework_version,model,dataset_or_mode,precision,batch_size_per_device,nodes,gpus_per_"
    "node,throughput_samples_per_s,speedup,notes\n";

Configuration own(const std::string& device, const std::string& model, const std::string& precision,
                  std::int64_t batch, int nodes, int devices) {
  return {.framework = "Plumbline",
          .model = model,
          .precision = precision,
          .device = device,
          .data = "synthetic",
          .batch_per_device = batch,
          .nodes = nodes,
          .devices_per_node = devices,
          .image_size = 224,
          .head = "none"};
}

Configuration face(const std::string& device, const std::string& model, const std::string& precision,
                   const std::string& head, std::int64_t classes) {
  Configuration configuration = own(device, model, precision, 128, 1, 8);
  configuration.image_size = 112;
  configuration.head = head;
  configuration.classes = classes;
  return configuration;
}

std::string line_of(const NearestPublished& near) {
  return near.result.framework + " " + std::to_string(near.result.images_per_second).substr(0, 8) + ": " +
         differences_text(near.differences);
}

const NearestPublished& of_family(const std::vector<NearestPublished>& all, const std::string& family) {
  static const NearestPublished none{};
  const auto found = std::find_if(all.begin(), all.end(), [&](const NearestPublished& near) {
    return framework_family(near.result.framework) == family;
  });
  return found == all.end() ? none : *found;
}

std::string first_line(const Configuration& configuration) {
  return line_of(nearest_published(configuration, 1).at(0));
}

TEST(NearestPublished, AreOnePerFrameworkWithEveryDifferenceNamed) {
  const Configuration v100 = own("Tesla V100-SXM2-16GB", "resnet50", "fp32", 128, 4, 8);
  const auto nearest = nearest_published(v100, 100);
  std::set<std::string> families;
  for (const NearestPublished& near : nearest)
    EXPECT_TRUE(families.insert(framework_family(near.result.framework)).second);
  EXPECT_EQ(families.size(), 14u);
  EXPECT_EQ(line_of(of_family(nearest, "OneFlow")), "OneFlow 12411.97: data synthetic against ImageNet");
  EXPECT_EQ(line_of(of_family(nearest, "MXNet")).substr(0, 63),
            "MXNet (gluon-cv) 9579.740: model resnet50 against rn50v1b, data");
  EXPECT_EQ(nearest_published(v100, 3).size(), 3u);
}

// Names as reported by drivers.
TEST(NearestPublished, AreOfTheSameGpuWhereThereIsOne) {
  EXPECT_EQ(first_line(own("NVIDIA H200", "resnet50", "fp16", 256, 1, 1)), "PyTorch 6790.240: ");
  EXPECT_EQ(first_line(own("NVIDIA H200", "resnet50", "fp16", 400, 1, 8)),
            "MLPerf MXNet 63559.40: data synthetic against ImageNet");
  EXPECT_EQ(first_line(own("NVIDIA H100 80GB HBM3", "resnet50", "fp16", 400, 1, 8)),
            "MLPerf MXNet 57338.30: data synthetic against ImageNet");
  EXPECT_EQ(first_line(own("NVIDIA A100-SXM4-80GB", "resnet50", "fp16", 256, 1, 1)),
            "NGC PaddlePaddle 2897.000: data synthetic against ImageNet");
  EXPECT_EQ(first_line(own("Tesla V100-SXM2-16GB", "resnet50", "fp16", 192, 1, 8)),
            "NGC MXNet 10931.00: data synthetic against ImageNet");
  EXPECT_EQ(first_line(own("Tesla T4", "resnet50", "fp16", 200, 1, 1)),
            "PyTorch (AdaptDL) 216.6000: data synthetic against ImageNet");
}

TEST(NearestPublished, PreferTheGpuToTheNumberOfDevicesAndThePrecision) {
  const auto nearest = nearest_published(own("NVIDIA H200", "resnet50", "bf16", 256, 1, 1), 100);
  EXPECT_EQ(of_family(nearest, "MLPerf MXNet").result.configuration.case_name(), "1n8g");
  EXPECT_EQ(of_family(nearest, "MLPerf MXNet").result.configuration.device, "H200");
  EXPECT_EQ(of_family(nearest, "NGC PyTorch").result.configuration.precision, "fp16");
  for (std::size_t i = 1; i < nearest.size(); ++i)
    EXPECT_LE(gpu_distance("NVIDIA H200", nearest[i - 1].result.configuration.device),
              gpu_distance("NVIDIA H200", nearest[i].result.configuration.device));
}

TEST(NearestPublished, AreOfTheGenerationWhereTheGpuHasNone) {
  const auto of_h800 = nearest_published(own("NVIDIA H800", "resnet50", "fp16", 400, 1, 8), 2);
  for (const NearestPublished& near : of_h800)
    EXPECT_EQ(generation_name(gpu_generation(near.result.configuration.device)), "Hopper");
  const auto of_a16 =
      of_family(nearest_published(own("NVIDIA A16", "resnet50", "fp16", 256, 1, 8), 100), "NGC TensorFlow");
  EXPECT_EQ(of_a16.result.configuration.device, "A100-SXM4-40GB");
}

TEST(NearestPublished, PreferDevicesThenPrecisionThenBatch) {
  const char* gpu = "V100-SXM2-16GB";
  const auto near = of_family(nearest_published(own(gpu, "resnet50", "fp16", 256, 1, 1), 100), "NGC PyTorch");
  EXPECT_EQ(near.result.configuration.case_name() + near.result.configuration.precision, "1n1gfp16");
  const auto paddle =
      of_family(nearest_published(own(gpu, "resnet50", "fp16", 200, 4, 8), 100), "PaddlePaddle");
  EXPECT_EQ(paddle.result.configuration.batch_per_device, 196);
  const auto odd = of_family(nearest_published(own(gpu, "resnet50", "fp32", 128, 1, 3), 100), "PyTorch");
  EXPECT_EQ(odd.result.configuration.devices_per_node, 4);
}

TEST(NearestPublished, StateTheirBatch) {
  const auto near = of_family(
      nearest_published(own("Tesla V100-SXM3-32GB", "resnet50", "fp32", 128, 1, 16), 100), "NGC PyTorch");
  EXPECT_EQ(near.result.configuration.device, "V100-SXM3-32GB");
  const auto rows = published_results_of(kHead + "a,PyTorch,1,ResNet50 v1.5,ImageNet,FP32,,1,1,500,,\n" +
                                         "b,PyTorch,1,ResNet50 v1.5,ImageNet,FP32,96,1,1,300,,\n");
  EXPECT_EQ(nearest_among(rows, own("", "resnet50", "fp32", 128, 1, 1)).at(0).result.source, "b");
}

TEST(NearestPublished, OfEqualsAreMediansAndFiguresThatNothingContradicts) {
  const std::string row = "PyTorch,1,ResNet50 v1.5,ImageNet,FP32,96,1,1,";
  for (const char* note : {"All Results (individual run)", "average_speed (mean of runs)",
                           "GPU: V100-SXM2-16GB; total_ips of the run, NCHW",
                           "GPU: V100-SXM2-16GB; rounded in the source", "hardware unspecified"}) {
    const auto rows =
        published_results_of(kHead + "a," + row + "900,,\"" + note + "\"\nb," + row + "300,,median\n");
    EXPECT_EQ(nearest_among(rows, own("", "resnet50", "fp32", 96, 1, 1)).at(0).result.source, "b") << note;
  }
}

TEST(NearestPublished, OfFacesHaveTheHeadAndTheNumberOfClasses) {
  Configuration small = face("Tesla V100-SXM2-16GB", "r100", "fp32", "pfc 0.1", 85742);
  small.batch_per_device = 64;
  for (const char* family : {"OneFlow", "MXNet"})
    EXPECT_EQ(of_family(nearest_published(small, 100), family).result.configuration.head, "pfc 0.1");
  EXPECT_EQ(first_line(face("NVIDIA H200", "r100", "fp16", "mp", 2'000'000)),
            "PyTorch (arcface_torch) 3480.000: device NVIDIA H200 against A100 80GB, data synthetic against "
            "WebFace2M");
  EXPECT_EQ(first_line(face("Tesla V100-SXM2-32GB", "r50", "fp16", "mp", 4'000'000)),
            "PyTorch (arcface_torch) 1748.000: ");
  EXPECT_EQ(first_line(face("NVIDIA A100-SXM4-80GB", "r50", "fp16", "pfc 0.1", 80'000'000)),
            "PyTorch (arcface_torch) 1080.000: device NVIDIA A100-SXM4-80GB against A100 80GB");
}

TEST(NearestPublished, AreNoGpusForACpuAndAllForADeviceWithoutAName) {
  EXPECT_TRUE(nearest_published(own("AMD EPYC", "resnet50", "fp32", 96, 1, 1), 100).empty());
  EXPECT_EQ(line_of(of_family(nearest_published(own("", "resnet50", "fp32", 96, 1, 1), 100), "NGC MXNet")),
            "NGC MXNet 385.0000: data synthetic against ImageNet");
}

TEST(NearestPublished, AreNoneOfAnUnknownModel) {
  EXPECT_TRUE(nearest_published(own("NVIDIA H200", "vgg16", "fp32", 64, 1, 1)).empty());
}

}  // namespace
}  // namespace plumb
