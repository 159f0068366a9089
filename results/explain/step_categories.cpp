#include "results/explain/step_categories.h"

#include <span>
#include <string>

#include "base/error.h"

namespace plumb {
namespace {

using enum StepCategory;

// The first rule whose part is in a name gives its category.
struct Rule {
  std::string_view part;
  StepCategory category;
};

constexpr Rule kOperatorRules[] = {
    // PyTorch's marks around Python code; what runs inside belongs to them whatever it is called
    {"Optimizer.step", optimizer},
    {"Optimizer.zero_grad", optimizer},
    {"DataLoader", data},
    {"c10d::", communication},
    {"gloo:", communication},
    {"nccl:", communication},
    {"record_param_comms", communication},
    {"ddp.reducer", communication},
    {"_fused_sgd", optimizer},
    {"_amp_", optimizer},
    // callers
    {"CompiledFunction", gaps},
    {"CompiledFxGraph", gaps},
    {"Torch-Compiled Region", gaps},
    {"TorchDynamo", gaps},
    {"AOTDispatcher", gaps},
    {"Pregraph bytecode", gaps},
    // convolutions, the separate halves of older versions first
    {"convolution_backward_input", conv_backward_data},
    {"convolution_backward_weight", conv_backward_weights},
    {"ConvolutionBackward", conv_backward},
    {"convolution_backward", conv_backward},
    {"conv2d_backward", conv_backward},
    {"aten::conv", conv_forward},
    {"aten::_conv", conv_forward},
    {"cudnn_conv", conv_forward},
    {"miopen_conv", conv_forward},
    {"mkldnn_conv", conv_forward},
    {"mkldnn::_conv", conv_forward},
    {"slow_conv", conv_forward},
    {"nn_conv", conv_forward},
    // also of fused kernels of torch.compile, whose names list the operators inside
    {"cross_entropy", loss},
    {"CrossEntropy", loss},
    {"nll_loss", loss},
    {"NllLoss", loss},
    {"softmax", loss},
    {"Softmax", loss},
    {"batch_norm", norm},
    {"BatchNorm", norm},
    {"max_pool", pooling},
    {"avg_pool", pooling},
    {"MaxPool", pooling},
    {"AvgPool", pooling},
    {"AdaptiveAvgPool", pooling},
    {"aten::linear", dense},
    {"aten::addmm", dense},
    {"aten::mm", dense},
    {"aten::bmm", dense},
    {"aten::matmul", dense},
    {"AddmmBackward", dense},
    {"MmBackward", dense},
    {"LinearBackward", dense},
    {"mkldnn::_linear", dense},
    {"mkl::_mkl_linear", dense},
    {"_fused_", elementwise},  // other fused kernels of torch.compile
    {"AccumulateGrad", elementwise},
    // callers: nodes of the backward pass; their operators have the categories
    {"autograd::engine::evaluate_function", gaps},
    {"Backward", gaps},
};

// What PyTorch does element by element, reduces, copies or only looks at in another way in these networks,
// each without its namespace, the '_' of in-place operators and its overload.
constexpr std::string_view kElementwiseOperators =
    " _copy_from _local_scalar_dense _prelu_kernel _prelu_kernel_backward _reshape_alias _to_copy "
    "_unsafe_view "
    "abs acos add alias any arange as_strided bernoulli broadcast_to cat chunk clamp clamp_max clamp_min "
    "clone "
    "contiguous copy cos detach div dropout empty empty_like empty_strided eq exp expand expand_as fill "
    "flatten "
    "full full_like gather gather_backward ge gt index is_nonzero isfinite item le lift_fresh "
    "linalg_vector_norm logical_and lt "
    "masked_fill max "
    "mean min mul narrow native_dropout native_dropout_backward ne neg new_empty new_empty_strided new_zeros "
    "norm "
    "ones ones_like permute pow prelu reciprocal relu reshape resize resolve_conj resolve_neg result_type "
    "rsqrt rsub "
    "scalar_tensor scatter scatter_add select select_backward set sin slice slice_backward split sqrt "
    "squeeze sub "
    "sum t threshold threshold_backward to transpose unsqueeze view view_as where zero zeros zeros_like ";

constexpr Rule kKernelRules[] = {
    {"nccl", communication},
    {"multi_tensor_apply", optimizer},
    {"FusedSgd", optimizer},
    {"amp_non_finite", optimizer},
    {"amp_update_scale", optimizer},
    {"bn_fw", norm},
    {"bn_bw", norm},
    {"batch_norm", norm},
    {"batchnorm", norm},
    {"BatchNorm", norm},
    {"dgrad", conv_backward_data},
    {"wgrad", conv_backward_weights},
    {"Wgrad", conv_backward_weights},
    {"stridedB_splitK", conv_backward_weights},
    {"stridedB", conv_backward_data},
    {"fprop", conv_forward},
    {"implicit_convolve", conv_forward},
    {"explicit_convolve", conv_forward},
    {"nll_loss", loss},
    {"ClassNLL", loss},
    {"softmax", loss},
    {"max_pool", pooling},
    {"avg_pool", pooling},
    {"average_pool", pooling},
    {"HtoD", data},
};

constexpr Rule kKernelFormRules[] = {
    {"scudnn", conv_forward},
    {"winograd", conv_forward},
    {"gemm", dense},
    {"gemv", dense},
    {"cutlass", dense},
    {"nvjet", dense},
    {"splitK", dense},
    {"elementwise", elementwise},
    {"reduce_kernel", elementwise},
    {"CatArray", elementwise},
    {"dropout", elementwise},
    {"index", elementwise},
    {"scatter", elementwise},
    {"gather", elementwise},
    {"triton_", elementwise},
    {"nchwToNhwc", elementwise},
    {"nhwcToNchw", elementwise},
    {"Memcpy DtoD", elementwise},
    {"Memset", elementwise},
    {"at::native", elementwise},
    {"DtoH", elementwise},
};

struct InstructionCategory {
  std::string_view kind;
  StepCategory category;
};
constexpr InstructionCategory kInstructionKinds[] = {
    {"load_batch", data},
    {"pack_batch", data},
    {"conv_forward", conv_forward},
    {"conv_backward_data", conv_backward_data},
    {"conv_backward_weights", conv_backward_weights},
    {"conv_norm_backward_data", conv_backward_data},
    {"norm_forward", norm},
    {"norm_statistics", norm},
    {"norm_finalize", norm},
    {"norm_apply", norm},
    {"norm_backward_apply", norm},
    {"norm_backward", norm},
    {"pool_forward", pooling},
    {"pool_backward", pooling},
    {"dense_forward", dense},
    {"dense_backward_data", dense},
    {"dense_backward_weights", dense},
    {"dropout_forward", elementwise},
    {"dropout_backward", elementwise},
    {"softmax_loss", loss},
    {"margin_features", loss},
    {"margin_sample", loss},
    {"margin_gather", loss},
    {"margin_class_norms", loss},
    {"margin_products", dense},
    {"margin_statistics", loss},
    {"margin_rescale", loss},
    {"margin_gradient", loss},
    {"margin_feature_products", dense},
    {"margin_weight_gradient", dense},
    {"margin_features_backward", loss},
    {"accumulate", elementwise},
    {"cast", elementwise},
    {"reduce", communication},
    {"find_overflow", optimizer},
    {"update", optimizer},
    {"update_rows", optimizer},
    {"advance_state", optimizer},
};

struct CategoryName {
  std::string_view name, key;
};
constexpr CategoryName kNames[] = {
    {"convolution forward", "conv_forward"},
    {"convolution backward, data", "conv_backward_data"},
    {"convolution backward, weights", "conv_backward_weights"},
    {"convolution backward", "conv_backward"},
    {"norm", "norm"},
    {"elementwise and copies", "elementwise"},
    {"dense layers and products", "dense"},
    {"pooling", "pooling"},
    {"loss", "loss"},
    {"optimiser", "optimizer"},
    {"communication, exposed", "communication"},
    {"data", "data"},
    {"gaps", "gaps"},
    {"unassigned", "unassigned"},
};
static_assert(std::size(kNames) == kStepCategories);

std::optional<StepCategory> first_match(std::span<const Rule> rules, std::string_view name) {
  for (const Rule& rule : rules)
    if (name.find(rule.part) != std::string_view::npos) return rule.category;
  return std::nullopt;
}

bool is_elementwise(std::string_view name) {
  if (const std::size_t space = name.rfind("::"); space != std::string_view::npos)
    name.remove_prefix(space + 2);
  name = name.substr(0, name.find('.'));
  if (name.ends_with('_')) name.remove_suffix(1);
  return kElementwiseOperators.find(" " + std::string(name) + " ") != std::string_view::npos;
}

}  // namespace

std::string_view name_of(StepCategory category) {
  return kNames[index_of(category)].name;
}

std::string_view key_of(StepCategory category) {
  return kNames[index_of(category)].key;
}

StepCategory category_of_instruction(std::string_view kind) {
  for (const InstructionCategory& known : kInstructionKinds)
    if (known.kind == kind) return known.category;
  throw Error(
      ExitCode::bad_data,
      "profile.json has an instruction of kind '{}', which this plumbline doesn't know; use the one that "
      "belongs to the run",
      kind);
}

std::optional<StepCategory> category_of_operator(std::string_view name) {
  if (const auto category = first_match(kOperatorRules, name)) return category;
  if (is_elementwise(name)) return elementwise;
  return std::nullopt;
}

std::optional<StepCategory> category_of_kernel(std::string_view name) {
  return first_match(kKernelRules, name);
}

std::optional<StepCategory> category_of_kernel_form(std::string_view name) {
  return first_match(kKernelFormRules, name);
}

}  // namespace plumb
