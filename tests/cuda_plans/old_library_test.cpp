// A cuDNN older than supported: this program's own symbol overrides the library's.
#include <gtest/gtest.h>

#include <cstddef>

#include "base/error.h"
#include "kernels/cuda/vendors/conv.h"

extern "C" std::size_t cudnnGetVersion() {
  return 8907;  // 8.9.7
}

namespace plumb::cuda {
namespace {

TEST(ConvEngine, RefusesALibraryThatLacksWhatIsCalled) {
  try {
    make_conv_engine({});
    FAIL() << "8.9.7 is too old";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::unavailable);
    EXPECT_EQ(std::string(error.what()),
              "--device cuda: cuDNN 8.9.7 is too old, 9.0.0 or newer is needed; put the folder of a "
              "newer one first in LD_LIBRARY_PATH, or use --device cpu");
  }
}

}  // namespace
}  // namespace plumb::cuda
