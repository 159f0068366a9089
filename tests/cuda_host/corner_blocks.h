// For tests of sizes that take too long otherwise: of each launch only the first block and the last one run.
#pragma once

#include <gtest/gtest.h>

#include "tests/cuda_host/emulated/block.h"

namespace plumb::cuda {

class CornerBlocks : public testing::Test {
 protected:
  void SetUp() override { gpu::emulated::block().run_corners_only(true); }
  void TearDown() override { gpu::emulated::block().run_corners_only(false); }
};

}  // namespace plumb::cuda
