// Measurements of bench_resnet50 other than time, on emulated GPUs: energy through NVML's stand-in.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/faults/started_program.h"

namespace plumb {
namespace {

const std::string kOnGpu = "--device cuda --no-autotune --image-size 32 --threads 1 ";

TEST(CudaMeasurements, EveryRanksGpuTellsClocksAndEnergyOfTheWindow) {
  const Place place;
  const Ended ended =
      place.run(Place::mpirun(2, place.resnet50(kOnGpu + "--bs 1 --lr 0.001 --warmup 1 --iters 3")),
                std::string("EMULATED_GPUS=2 PLUMBLINE_NVML_LIBRARY=") + PLUMB_FAKE_NVML);
  ASSERT_EQ(ended.exit_code, 0);
  const nlohmann::ordered_json result = place.result();
  ASSERT_EQ(result.at("gpus").size(), 2U);
  double joules = 0;
  for (int rank : {0, 1}) {
    const auto& gpu = result.at("gpus").at(static_cast<std::size_t>(rank));
    EXPECT_EQ(gpu.at("rank"), rank);
    EXPECT_EQ(gpu.at("name"), "Fake H200");
    // Only rank 0 reports its samples; a window shorter than the monitor's period may hold none.
    EXPECT_EQ(gpu.contains("samples"), rank == 0 && gpu.at("sample_count") > 0);
    EXPECT_GT(gpu.at("joules").get<double>(), 0);
    joules += gpu.at("joules").get<double>();
  }
  EXPECT_NE(result.at("gpus").at(0).at("id"), result.at("gpus").at(1).at("id"));
  EXPECT_NEAR(result.at("energy_joules_per_image").get<double>(), joules / (2 * 1 * 2), 1e-9 * joules);
}

TEST(CudaMeasurements, AbsentNvmlIsNoError) {
  const Place place;
  const Ended ended = place.run(place.resnet50(kOnGpu + "--bs 1 --lr 0.001 --warmup 0 --iters 1"),
                                "EMULATED_GPUS=1 PLUMBLINE_NVML_LIBRARY=/nowhere/libnvidia-ml.so.1");
  ASSERT_EQ(ended.exit_code, 0);
  const nlohmann::ordered_json result = place.result();
  EXPECT_TRUE(result.at("energy_joules_per_image").is_null());
  EXPECT_FALSE(result.contains("gpus"));
}

}  // namespace
}  // namespace plumb
