// A cuDNN older than the headers: this program's own answer takes the place of the library's.
#include <cudnn_version.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "kernels/cuda/conv.h"
#include "models/error.h"

extern "C" std::size_t cudnnGetVersion() {
  return 90102;
}

namespace plumb::cuda {
namespace {

TEST(ConvEngine, RefusesALibraryOlderThanItsHeadersAndNamesBoth) {
  try {
    make_conv_engine({});
    FAIL() << "9.1.2 is too old";
  } catch (const Error& error) {
    const std::string sentence = error.what();
    EXPECT_EQ(error.code(), ExitCode::unavailable);
    EXPECT_NE(sentence.find("cuDNN 9.1.2 was loaded"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("built against " + std::to_string(CUDNN_MAJOR) + "." +
                            std::to_string(CUDNN_MINOR) + "." + std::to_string(CUDNN_PATCHLEVEL)),
              std::string::npos)
        << sentence;
  }
}

}  // namespace
}  // namespace plumb::cuda
