#include "kernels/cuda/plan/gpu_choice.h"

#include <gtest/gtest.h>

#include "tests/bench/expect_error.h"

namespace plumb::cuda {
namespace {

TEST(GpuChoice, SaysWhyNoGpuIsVisible) {
  constexpr int kNoDriver = 0, kCuda11_4 = 11040, kCuda12_8 = 12080, kCuda13_2 = 13020;
  const std::string insufficient = "CUDA driver version is insufficient for CUDA runtime version";
  EXPECT_EQ(why_no_gpu(insufficient, kNoDriver, kCuda12_8),
            "--device cuda: no CUDA GPU answers (this machine has no NVIDIA driver); install one for CUDA 12 "
            "or newer, or use --device cpu");
  EXPECT_EQ(why_no_gpu(insufficient, kCuda11_4, kCuda12_8),
            "--device cuda: no CUDA GPU answers (the driver is for CUDA 11.4, this program for CUDA 12); "
            "update the driver to CUDA 12 or newer, or use --device cpu");
  EXPECT_EQ(why_no_gpu("", kCuda13_2, kCuda12_8),
            "--device cuda: no CUDA GPU answers (none is visible); check nvidia-smi and "
            "CUDA_VISIBLE_DEVICES, or use --device cpu");
  EXPECT_EQ(why_no_gpu("unknown error", kCuda12_8, kCuda12_8),
            "--device cuda: no CUDA GPU answers (unknown error); check nvidia-smi and CUDA_VISIBLE_DEVICES, "
            "or use --device cpu");
}

TEST(GpuArchitectures, MachineCodeRunsWithinItsMajorVersionFromItsOwnMinorOn) {
  EXPECT_TRUE(runs_on(80, "80-real"));
  EXPECT_TRUE(runs_on(86, "80-real"));
  EXPECT_TRUE(runs_on(89, "80-real"));
  EXPECT_FALSE(runs_on(90, "80-real"));
  EXPECT_FALSE(runs_on(80, "86-real"));
  EXPECT_FALSE(runs_on(75, "80-real"));
  EXPECT_FALSE(runs_on(120, "100-real"));
}

TEST(GpuArchitectures, PtxRunsOnAllThatCameLater) {
  EXPECT_TRUE(runs_on(120, "90-virtual"));
  EXPECT_TRUE(runs_on(120, "80,90"));
  EXPECT_FALSE(runs_on(75, "80;90"));
  EXPECT_FALSE(runs_on(70, "75-virtual"));
}

TEST(GpuArchitectures, CodeForOneFamilyRunsOnNothingLater) {
  EXPECT_TRUE(runs_on(90, "90a"));
  EXPECT_FALSE(runs_on(100, "90a"));
  EXPECT_TRUE(runs_on(100, "90a,100f"));
}

TEST(GpuArchitectures, AnEmptyListRunsNowhere) {
  EXPECT_FALSE(runs_on(90, ""));
}

TEST(GpuArchitectures, AListMayEndInASeparator) {
  EXPECT_TRUE(runs_on(120, "80,90-real;"));
  EXPECT_FALSE(runs_on(100, "90-real;"));
}

TEST(GpuArchitectures, OtherTextIsADefectOfTheBuild) {
  for (const char* list : {"native", "80-fast", "80,,90", "a", "90x"})
    expect_error(ExitCode::internal, {"GPU architecture"}, [&] { runs_on(90, list); });
}

TEST(GpuArchitectures, ATooOldGpuIsToldWhatTheProgramHolds) {
  EXPECT_NO_THROW(require_architecture(90, "80,90", "NVIDIA H200"));
  expect_error(
      ExitCode::unavailable,
      {"--device cuda: the Tesla V100 is sm_70, and this program has kernels for sm_80, "
       "compute_90; build it with -DPLUMB_CUDA_ARCHITECTURES=70 and a CUDA toolkit that knows it, or "
       "use --device cpu"},
      [] { require_architecture(70, "80,90-virtual", "Tesla V100"); });
}

}  // namespace
}  // namespace plumb::cuda
