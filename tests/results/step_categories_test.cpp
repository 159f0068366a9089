#include "results/explain/step_categories.h"

#include <gtest/gtest.h>

#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "kernels/program/program.h"
#include "tests/bench/expect_error.h"

namespace plumb {
namespace {

using enum StepCategory;

template <typename... T>
std::vector<std::string_view> kinds(std::type_identity<std::variant<T...>>) {
  return {T::kName...};
}

TEST(StepCategories, EveryKindOfStepThatADeviceRunsIsSorted) {
  for (std::string_view kind : kinds(std::type_identity<Operation>())) {
    if (kind == Recorded::kName) continue;
    EXPECT_NE(category_of_instruction(kind), unassigned) << kind;
  }
  EXPECT_EQ(category_of_instruction("conv_norm_backward_data"), conv_backward_data);
  EXPECT_EQ(category_of_instruction("channel_products"), conv_backward_weights);
  EXPECT_EQ(category_of_instruction("product_norm_backward"), norm);
  EXPECT_EQ(category_of_instruction("masked_gradient"), elementwise);
  EXPECT_EQ(category_of_instruction("margin_products"), dense);
  EXPECT_EQ(category_of_instruction("margin_gradient"), loss);
  expect_error(ExitCode::bad_data, {"'attention'"}, [] { category_of_instruction("attention"); });
}

TEST(StepCategories, OperatorsAreSortedByTheFirstRuleThatFits) {
  EXPECT_EQ(category_of_operator("aten::conv2d"), conv_forward);
  EXPECT_EQ(category_of_operator("aten::mkldnn_convolution"), conv_forward);
  EXPECT_EQ(category_of_operator("aten::thnn_conv2d"), conv_forward);
  EXPECT_EQ(category_of_operator("aten::convolution_backward"), conv_backward);
  EXPECT_EQ(category_of_operator("autograd::engine::evaluate_function: ConvolutionBackward0"), conv_backward);
  EXPECT_EQ(category_of_operator("aten::cudnn_convolution_backward_input"), conv_backward_data);
  EXPECT_EQ(category_of_operator("aten::cudnn_convolution_backward_weight"), conv_backward_weights);
  EXPECT_EQ(category_of_operator("aten::native_batch_norm"), norm);
  EXPECT_EQ(category_of_operator("graph_0_cpp_fused__native_batch_norm_legit_functional_add_relu_4"), norm);
  EXPECT_EQ(category_of_operator("aten::linalg_vector_norm"), elementwise);
  EXPECT_EQ(category_of_operator("aten::max_pool2d_with_indices_backward"), pooling);
  EXPECT_EQ(category_of_operator("aten::addmm"), dense);
  EXPECT_EQ(category_of_operator("aten::cross_entropy_loss"), loss);
  EXPECT_EQ(category_of_operator("Optimizer.step#SGD.step"), optimizer);
  EXPECT_EQ(category_of_operator("gloo:all_reduce"), communication);
  EXPECT_EQ(category_of_operator("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"), data);
}

TEST(StepCategories, ElementwiseOperatorsAreKnownInAllTheirForms) {
  for (const char* name : {"aten::add", "aten::add_", "aten::add.out", "aten::_to_copy", "detach", "aten::t"})
    EXPECT_EQ(category_of_operator(name), elementwise) << name;
  for (const char* name :
       {"aten::addcmul", "aten::_scaled_dot_product_attention", "my_op", "", "aten::", " "})
    EXPECT_EQ(category_of_operator(name), std::nullopt) << name;
}

TEST(StepCategories, WhatOnlyCallsOthersIsGaps) {
  for (const char* name : {"autograd::engine::evaluate_function: MulBackward0", "MulBackward0",
                           "CompiledFunctionBackward", "Torch-Compiled Region: 0/0"})
    EXPECT_EQ(category_of_operator(name), gaps) << name;
}

TEST(StepCategories, KernelsThatSayWhatTheyComputeAreSorted) {
  EXPECT_EQ(category_of_kernel("sm80_xmma_dgrad_implicit_gemm_indexed_f16f16_f16f32_f32"),
            conv_backward_data);
  EXPECT_EQ(category_of_kernel("sm80_xmma_wgrad_implicit_gemm_indexed_f16f16_f16f32_f32"),
            conv_backward_weights);
  EXPECT_EQ(category_of_kernel("cutlass_tensorop_f16_s16816fprop_optimized_f16_128x128"), conv_forward);
  EXPECT_EQ(category_of_kernel("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>"), norm);
  EXPECT_EQ(category_of_kernel("void cudnn::bn_bw_1C11_kernel_new<float>"), norm);
  EXPECT_EQ(category_of_kernel("void at::native::batch_norm_backward_elemt_channels_last_kernel<4>"), norm);
  EXPECT_EQ(category_of_kernel("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<>"),
            optimizer);
  EXPECT_EQ(category_of_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
            communication);
  EXPECT_EQ(category_of_kernel("Memcpy HtoD (Pinned -> Device)"), data);
  EXPECT_EQ(category_of_kernel("volta_sgemm_64x64_nt"), std::nullopt);
  EXPECT_EQ(category_of_kernel_form("volta_sgemm_64x64_nt"), dense);
  EXPECT_EQ(category_of_kernel_form("void at::native::vectorized_elementwise_kernel<4, …>"), elementwise);
  EXPECT_EQ(category_of_kernel_form("my_kernel"), std::nullopt);
}

}  // namespace
}  // namespace plumb
