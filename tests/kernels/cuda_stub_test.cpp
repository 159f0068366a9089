#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/device.h"

namespace plumb {
namespace {

TEST(CudaStub, SaysThatTheBuildHasNoCudaAndWhatWasLookedFor) {
  try {
    cuda::make_device({.choice = DeviceChoice::cuda});
    FAIL() << "a CUDA device in a build without CUDA";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::unavailable);
    const std::string sentence = error.what();
    for (const char* word : {"--device cuda", "nvcc", "cuDNN", "--device cpu"}) {
      EXPECT_NE(sentence.find(word), std::string::npos) << word << " is missing in: " << sentence;
    }
  }
}

}  // namespace
}  // namespace plumb
