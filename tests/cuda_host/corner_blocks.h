// For sizes that would take too long: only the first and the last block of each launch run.
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
