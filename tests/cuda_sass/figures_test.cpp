// How many blocks reside on a multiprocessor, against NVIDIA's own count where its header is there.
#include "tests/cuda_sass/figures.h"

#include <gtest/gtest.h>

#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#endif

namespace plumb::sass {
namespace {

TEST(SassFigures, BlocksAreLimitedByWhatRunsOutFirst) {
  EXPECT_EQ(resident_blocks({.threads = 256, .registers = 32, .shared_bytes = 1024}), 8);  // threads
  EXPECT_EQ(resident_blocks({.threads = 256, .registers = 64, .shared_bytes = 1024}), 4);  // registers
  EXPECT_EQ(resident_blocks({.threads = 256, .registers = 65, .shared_bytes = 1024}), 3);  // … in steps of 8
  EXPECT_EQ(resident_blocks({.threads = 32, .registers = 16, .shared_bytes = 1024}), 32);   // blocks
  EXPECT_EQ(resident_blocks({.threads = 128, .registers = 32, .shared_bytes = 50000}), 4);  // shared memory
}

TEST(SassFigures, LittlesLaw) {
  EXPECT_NEAR(wanted_bytes_in_flight(3.35e12, 600e-9, 132), 15227, 1);
}

TEST(SassFigures, ATableHasTheF16KernelOfSm90) {
  const std::vector<KernelCode> kernels{{.function = "f",
                                         .name = "copy<f16>",
                                         .architecture = 90,
                                         .registers = 32,
                                         .shared_bytes = 0,
                                         .code = {}},
                                        {.function = "g",
                                         .name = "copy<f32>",
                                         .architecture = 90,
                                         .registers = 32,
                                         .shared_bytes = 0,
                                         .code = {}}};
  const std::string text = figures_table(kernels, {{.kernel = "copy<*>", .threads = 256}});
  EXPECT_NE(text.find("| `copy<f16>` | 32 | 1 | 256 | 8 / 64 | 0 / 0 | 0 |"), std::string::npos) << text;
  EXPECT_EQ(text.find("copy<f32>"), std::string::npos);
  const std::string copied = figures_table(
      kernels,
      {{.kernel = "copy<*>", .threads = 256, .dynamic_shared_bytes = 64 * 1024, .copied_bytes = 32 * 1024}});
  EXPECT_NE(copied.find("| `copy<f16>` | 32 | 65 | 256 | 3 / 24 | 32 KiB a block | 96 |"), std::string::npos)
      << copied;
}

#if __has_include(<cuda_occupancy.h>)
TEST(SassFigures, BlocksAreThoseOfNvidiasCalculator) {
  cudaOccDeviceProp hopper;
  hopper.computeMajor = 9;
  hopper.computeMinor = 0;
  hopper.maxThreadsPerBlock = 1024;
  hopper.maxThreadsPerMultiprocessor = 2048;
  hopper.regsPerBlock = hopper.regsPerMultiprocessor = 65536;
  hopper.warpSize = 32;
  hopper.sharedMemPerBlock = 48 * 1024;
  hopper.sharedMemPerMultiprocessor = 228 * 1024;
  hopper.numSms = 132;
  hopper.sharedMemPerBlockOptin = 227 * 1024;
  hopper.reservedSharedMemPerBlock = 1024;
  cudaOccDeviceState state;
  state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
  for (int threads : {32, 128, 256, 1024}) {
    for (int registers = 16; registers * threads <= 65536 && registers < 256; registers += 3) {
      for (int shared : {0, 1000, 8704, 18688, 40000}) {
        cudaOccFuncAttributes kernel{};
        kernel.maxThreadsPerBlock = 1024;
        kernel.numRegs = registers;
        cudaOccResult result{};
        if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &hopper, &kernel, &state, threads,
                                                    static_cast<std::size_t>(shared)) != CUDA_OCC_SUCCESS)
          FAIL() << "the calculator refuses " << threads << " threads";
        EXPECT_EQ(
            resident_blocks({.threads = threads, .registers = registers, .shared_bytes = shared + 1024}),
            result.activeBlocksPerMultiprocessor)
            << threads << " threads, " << registers << " registers, " << shared << " bytes";
      }
    }
  }
}
#endif

}  // namespace
}  // namespace plumb::sass
