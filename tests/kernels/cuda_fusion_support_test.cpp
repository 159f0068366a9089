// Which fused engines each GPU and precision has.
#include <gtest/gtest.h>

#include "kernels/cuda/plan/fusion.h"

namespace plumb::cuda {
namespace {

TEST(FusionSupport, IsWhatBuildsForEachGpu) {
  struct Row {
    int compute_capability;
    bool statistics, normalized_input, norm_backward_data, block_end_gradient;
  };
  for (const Row& row : {Row{70, false, false, false, false}, Row{75, false, false, false, false},
                         Row{80, true, true, false, true}, Row{86, true, true, false, true},
                         Row{89, true, true, false, true}, Row{90, true, true, true, true},
                         Row{100, true, false, false, true}, Row{120, true, false, false, true}}) {
    const FusionSupport support = fusion_support(row.compute_capability, Precision::fp16, false);
    EXPECT_EQ(support.statistics, row.statistics) << row.compute_capability;
    EXPECT_EQ(support.normalized_input, row.normalized_input) << row.compute_capability;
    EXPECT_EQ(support.normalized_input_weights, row.normalized_input) << row.compute_capability;
    EXPECT_EQ(support.norm_backward_data, row.norm_backward_data) << row.compute_capability;
    EXPECT_EQ(support.block_end_gradient, row.block_end_gradient) << row.compute_capability;
    EXPECT_TRUE(support.product_norm) << row.compute_capability;
    EXPECT_EQ(support.why_none.empty(), row.statistics) << row.compute_capability;
  }
}

// Three runs on an H100 had different statistics.
TEST(FusionSupport, IsThereWhereRunsNeedNotRepeatBitForBit) {
  for (const int compute_capability : {80, 86, 89, 90, 100, 120}) {
    const FusionSupport support = fusion_support(compute_capability, Precision::fp16, true);
    EXPECT_FALSE(support.statistics || support.normalized_input || support.normalized_input_weights ||
                 support.norm_backward_data)
        << compute_capability;
    EXPECT_TRUE(support.block_end_gradient && support.product_norm) << "by kernels that sum in a fixed order";
    EXPECT_NE(support.why_none.find("fixed order"), std::string::npos) << support.why_none;
  }
  EXPECT_EQ(fusion_support(75, Precision::fp16, true).why_none, "sm_75 has no fused engine of cuDNN");
}

// By tensor cores' dtypes; strict fp32 has none.
TEST(FusionSupport, BlocksEndWithoutAnOutputWhereProductsHaveThePrecision) {
  for (const int compute_capability : {70, 75})
    for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16})
      EXPECT_EQ(fusion_support(compute_capability, precision, false).product_norm,
                precision == Precision::fp32 || precision == Precision::fp16)
          << compute_capability << " " << name_of(precision);
  EXPECT_FALSE(fusion_support(60, Precision::fp32, false).product_norm);
}

TEST(FusionSupport, OfCudnnIsThereForFp16Only) {
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16}) {
    const FusionSupport support = fusion_support(90, precision, false);
    EXPECT_FALSE(support.statistics || support.normalized_input || support.normalized_input_weights ||
                 support.norm_backward_data);
    EXPECT_EQ(support.block_end_gradient, precision == Precision::bf16);
    EXPECT_TRUE(support.product_norm);
    EXPECT_NE(support.why_none.find(name_of(precision)), std::string::npos);
  }
}

}  // namespace
}  // namespace plumb::cuda
