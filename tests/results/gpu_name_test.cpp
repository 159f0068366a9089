#include "results/record/gpu_name.h"

#include <gtest/gtest.h>

namespace plumb {
namespace {

TEST(GpuName, HasAGeneration) {
  const auto generation = [](const char* name) { return generation_name(gpu_generation(name)); };
  EXPECT_EQ(generation("Tesla V100-SXM2-16GB"), "Volta");
  EXPECT_EQ(generation("V100S-PCIE-32GB"), "Volta");
  EXPECT_EQ(generation("Tesla T4"), "Turing");
  EXPECT_EQ(generation("Quadro RTX 8000"), "Turing");
  EXPECT_EQ(generation("NVIDIA GeForce RTX 2080 Ti"), "Turing");
  EXPECT_EQ(generation("NVIDIA A100 80GB PCIe"), "Ampere");
  EXPECT_EQ(generation("NVIDIA A10G"), "Ampere");
  EXPECT_EQ(generation("NVIDIA RTX A6000"), "Ampere");
  EXPECT_EQ(generation("NVIDIA GeForce RTX 3090"), "Ampere");
  EXPECT_EQ(generation("NVIDIA L40S"), "Ada");
  EXPECT_EQ(generation("NVIDIA RTX 6000 Ada Generation"), "Ada");
  EXPECT_EQ(generation("NVIDIA GeForce RTX 4090"), "Ada");
  EXPECT_EQ(generation("NVIDIA H100 80GB HBM3"), "Hopper");
  EXPECT_EQ(generation("NVIDIA GH200 480GB"), "Hopper");
  EXPECT_EQ(generation("NVIDIA B200"), "Blackwell");
  EXPECT_EQ(generation("NVIDIA GeForce RTX 5090"), "Blackwell");
  for (const char* name : {"", "AMD EPYC", "Gaudi2", "Radeon RX 7900 XTX", "Tesla P100-PCIE-16GB"})
    EXPECT_EQ(generation(name), "") << name;
}

// Names reported by the driver, beside the published ones.
TEST(GpuName, OfTheDriverIsThatOfATable) {
  EXPECT_TRUE(is_same_device("NVIDIA H200", "H200"));
  EXPECT_TRUE(is_same_device("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"));
  EXPECT_TRUE(is_same_device("Tesla V100-SXM2-16GB", "V100-SXM2-16GB"));
  EXPECT_TRUE(is_same_device("NVIDIA H100 80GB HBM3", "H100 80GB HBM3"));
  EXPECT_FALSE(is_same_device("NVIDIA H200", "GH200 480GB"));
  EXPECT_FALSE(is_same_device("NVIDIA A100-SXM4-80GB", "A100 80GB"));
}

TEST(GpuName, IsNearToItsProductThenToItsGenerationThenToItsTime) {
  EXPECT_EQ(gpu_distance("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"), 0);
  EXPECT_EQ(gpu_distance("NVIDIA A100-SXM4-80GB", "A100-PCIE-40GB"), 1);
  EXPECT_EQ(gpu_distance("NVIDIA A100-SXM4-80GB", "A100 80GB"), 1);
  EXPECT_EQ(gpu_distance("NVIDIA A100-SXM4-80GB", "A30"), 2);
  EXPECT_EQ(gpu_distance("NVIDIA A100-SXM4-80GB", "H100 PCIe"), 3);
  EXPECT_EQ(gpu_distance("NVIDIA A100-SXM4-80GB", "V100-SXM2-16GB"), 3);
  EXPECT_EQ(gpu_distance("NVIDIA H200", "H100 80GB HBM3"), 2);
  EXPECT_EQ(gpu_distance("NVIDIA H200", "L40S"), 3);
  EXPECT_EQ(gpu_distance("NVIDIA H200", "B200"), 3);
  EXPECT_EQ(gpu_distance("NVIDIA H200", "V100-SXM2-16GB"), 4);
  EXPECT_EQ(gpu_distance("NVIDIA H200", "T4"), 4);
  EXPECT_EQ(gpu_distance("Tesla T4", "V100-SXM2-16GB"), 3);
  EXPECT_EQ(gpu_distance("NVIDIA B200", "V100-SXM2-16GB"), 5);
  EXPECT_GT(gpu_distance("NVIDIA B200", "Gaudi2"), 6);
  EXPECT_GT(gpu_distance("NVIDIA B200", ""), 6);
}

TEST(GpuName, IsAsFarFromAnyOtherThanItselfIfItIsNotKnown) {
  for (const char* other : {"H200", "V100-SXM2-16GB", "Gaudi2", ""}) {
    EXPECT_EQ(gpu_distance("AMD EPYC", other), 1) << other;
    EXPECT_EQ(gpu_distance("", other), 1) << other;
  }
  EXPECT_EQ(gpu_distance("Gaudi2", "Gaudi2"), 0);
}

TEST(GpuName, IsNamedByWordsAndWholeNumbers) {
  EXPECT_TRUE(names_gpu("h200", "H200"));
  EXPECT_TRUE(names_gpu("NVIDIA H200", "H200"));
  EXPECT_FALSE(names_gpu("h200", "GH200 480GB"));
  EXPECT_TRUE(names_gpu("a10", "A10"));
  EXPECT_TRUE(names_gpu("a10", "A10G"));
  EXPECT_FALSE(names_gpu("a10", "A100-SXM4-80GB"));
  EXPECT_TRUE(names_gpu("A100 SXM", "A100-SXM4-80GB"));
  EXPECT_TRUE(names_gpu("80gb", "A100-SXM4-80GB"));
  EXPECT_FALSE(names_gpu("0gb", "A100-SXM4-80GB"));
  EXPECT_TRUE(names_gpu("4090", "GeForce RTX 4090"));
  EXPECT_TRUE(names_gpu("Hopper", "GH200 480GB"));
  EXPECT_TRUE(names_gpu("ada", "L40S"));
  EXPECT_FALSE(names_gpu("ampere", "L40S"));
  EXPECT_FALSE(names_gpu("h200", ""));
  EXPECT_TRUE(names_gpu("", ""));
}

}  // namespace
}  // namespace plumb
