#include <gtest/gtest.h>

#include "results/report/report_curves.h"

namespace plumb {
namespace {

using Texts = std::vector<std::string>;

Configuration on(const std::string& device) {
  return {.framework = "Plumbline",
          .model = "resnet50",
          .precision = "fp16",
          .device = device,
          .data = "synthetic",
          .batch_per_device = 256,
          .image_size = 224};
}

Configuration face(const std::string& head) {
  Configuration configuration = on("NVIDIA H100 80GB HBM3");
  configuration.model = "r50";
  configuration.image_size = 112;
  configuration.head = head;
  configuration.classes = 85742;
  configuration.options = {{"dropout", "0.4"}, {"embedding", "512"}};
  return configuration;
}

TEST(Labels, SayWhatDiffersAndOnceWhatAllHave) {
  const Labels labels = labels_of({on("NVIDIA H200"), on("NVIDIA H100 80GB HBM3")});
  EXPECT_EQ(labels.each, (Texts{"NVIDIA H200", "NVIDIA H100 80GB HBM3"}));
  EXPECT_EQ(labels.common, "Plumbline resnet50 fp16, batch 256, synthetic");
}

TEST(Labels, LeaveOutWhatIsUsualForAModel) {
  const Labels labels = labels_of({on("NVIDIA H100 80GB HBM3"), face("mp"), face("pfc 0.1")});
  EXPECT_EQ(labels.each,
            (Texts{"resnet50", "r50, head mp, 85742 classes", "r50, head pfc 0.1, 85742 classes"}));
  EXPECT_EQ(labels.common, "Plumbline fp16, batch 256, NVIDIA H100 80GB HBM3, synthetic");
}

TEST(Labels, NameASettingThatNotAllHaveAndAnImageSizeThatIsUnusual) {
  Configuration plain = on("NVIDIA H200"), unfused = plain, small = plain;
  unfused.settings = {{"fusion", "off"}};
  small.image_size = 64;
  EXPECT_EQ(labels_of({plain, unfused}).each, (Texts{"Plumbline fp16, batch 256", "fusion off"}));
  EXPECT_EQ(labels_of({small}).common,
            "Plumbline resnet50 fp16, batch 256, NVIDIA H200, synthetic, 64 pixels");
}

TEST(Labels, OfOneConfigurationAreItsFrameworkPrecisionAndBatch) {
  EXPECT_EQ(labels_of({on("NVIDIA H200")}).each, Texts{"Plumbline fp16, batch 256"});
  EXPECT_TRUE(labels_of({}).each.empty());
}

}  // namespace
}  // namespace plumb
