// A cuDNN older than supported: this program's own symbol overrides the library's.
#include <gtest/gtest.h>

#include <cstddef>

#include "kernels/cuda/vendors/conv.h"
#include "tests/bench/expect_error.h"

extern "C" std::size_t cudnnGetVersion() {
  return 8907;  // 8.9.7
}

namespace plumb::cuda {
namespace {

TEST(ConvEngine, RefusesALibraryThatLacksWhatIsCalled) {
  expect_error(ExitCode::unavailable,
               {"--device cuda: cuDNN 8.9.7 is too old, 9.0.0 or newer is needed; put the folder of a "
                "newer one first in LD_LIBRARY_PATH, or use --device cpu"},
               [] { make_conv_engine({}); });
}

}  // namespace
}  // namespace plumb::cuda
