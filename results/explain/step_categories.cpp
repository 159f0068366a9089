// Which names belong to which category.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "results/explain/framework_trace.h"

namespace plumb {
namespace {

using enum StepCategory;

// The first rule of which a part is in a name gives its category.
struct Rule {
  StepCategory category;
  std::vector<std::string_view> parts;
};

const Rule kOperatorRules[] = {
    // PyTorch's marks around Python code; what runs inside belongs to them whatever it is called
    {optimizer, {"Optimizer.step", "Optimizer.zero_grad"}},
    {data, {"DataLoader"}},
    {communication, {"c10d::", "gloo:", "nccl:", "record_param_comms", "ddp.reducer"}},
    {optimizer, {"_fused_sgd", "_amp_"}},
    // callers
    {gaps,
     {"CompiledFunction", "CompiledFxGraph", "Torch-Compiled Region", "TorchDynamo", "AOTDispatcher",
      "Pregraph bytecode"}},
    // convolutions
    {conv_backward, {"ConvolutionBackward", "convolution_backward", "conv2d_backward"}},
    {conv_forward,
     {"aten::conv", "aten::_conv", "cudnn_conv", "miopen_conv", "mkldnn_conv", "mkldnn::_conv", "slow_conv",
      "nn_conv"}},
    // also of fused kernels of torch.compile, whose names list the operators inside
    {loss, {"cross_entropy", "CrossEntropy", "nll_loss", "NllLoss", "softmax", "Softmax"}},
    {norm, {"batch_norm", "BatchNorm"}},
    {pooling, {"max_pool", "avg_pool", "MaxPool", "AvgPool", "AdaptiveAvgPool"}},
    {dense,
     {"aten::linear", "aten::addmm", "aten::mm", "aten::bmm", "aten::matmul", "AddmmBackward", "MmBackward",
      "LinearBackward", "mkldnn::_linear", "mkl::_mkl_linear"}},
    {elementwise, {"_fused_", "AccumulateGrad"}},  // other fused kernels of torch.compile; sums of gradients
    // callers: nodes of the backward pass; their operators have the categories
    {gaps, {"autograd::engine::evaluate_function", "Backward"}},
};

// What PyTorch does element by element, reduces, copies or only looks at in another way in these networks,
// each without its namespace, the '_' of in-place operators and its overload.
constexpr std::string_view kElementwiseOperators =
    " _copy_from _local_scalar_dense _prelu_kernel _prelu_kernel_backward _reshape_alias _to_copy "
    "_unsafe_view abs acos add alias any arange as_strided bernoulli broadcast_to cat chunk clamp clamp_max "
    "clamp_min clone contiguous copy cos detach div dropout empty empty_like empty_strided eq exp expand "
    "expand_as fill flatten full full_like gather gather_backward ge gt index is_nonzero isfinite item le "
    "lift_fresh linalg_vector_norm logical_and lt masked_fill max mean min mul narrow native_dropout "
    "native_dropout_backward ne neg new_empty new_empty_strided new_zeros norm ones ones_like permute pow "
    "prelu reciprocal relu reshape resize resolve_conj resolve_neg result_type rsqrt rsub scalar_tensor "
    "scatter scatter_add select select_backward set sin slice slice_backward split sqrt squeeze sub sum t "
    "threshold threshold_backward to transpose unsqueeze view view_as where zero zeros zeros_like ";

const Rule kKernelRules[] = {
    {communication, {"nccl"}},
    {optimizer, {"multi_tensor_apply", "FusedSgd", "amp_non_finite", "amp_update_scale"}},
    {norm, {"bn_fw", "bn_bw", "batch_norm", "batchnorm", "BatchNorm"}},
    {conv_backward_data, {"dgrad"}},
    {conv_backward_weights, {"wgrad", "Wgrad", "stridedB_splitK"}},
    {conv_backward_data, {"stridedB"}},
    {conv_forward, {"fprop", "implicit_convolve", "explicit_convolve"}},
    {loss, {"nll_loss", "ClassNLL", "softmax"}},
    {pooling, {"max_pool", "avg_pool", "average_pool"}},
    {data, {"HtoD"}},
};

const Rule kKernelFormRules[] = {
    {conv_forward, {"scudnn", "winograd"}},
    {dense, {"gemm", "gemv", "cutlass", "nvjet", "splitK"}},
    {elementwise,
     {"elementwise", "reduce_kernel", "CatArray", "dropout", "index", "scatter", "gather", "triton_",
      "nchwToNhwc", "nhwcToNchw", "Memcpy DtoD", "Memset", "at::native", "DtoH"}},
};

const Rule kInstructionKinds[] = {
    {data, {"load_batch", "pack_batch"}},
    {dense, {"dense_", "margin_products", "margin_feature_products", "margin_weight_gradient"}},
    {conv_forward, {"conv_forward", "block_end_forward"}},
    {conv_backward_data, {"backward_data"}},
    {conv_backward_weights, {"backward_weights", "channel_products"}},
    {norm, {"norm_"}},
    {pooling, {"pool_"}},
    {loss, {"softmax_loss", "margin_"}},
    {elementwise, {"sample_pixels", "masked_gradient", "dropout_", "accumulate", "cast"}},
    {communication, {"reduce"}},
    {optimizer, {"find_overflow", "update", "advance_state"}},
};

constexpr std::string_view kKeys[] = {"conv_forward",
                                      "conv_backward_data",
                                      "conv_backward_weights",
                                      "conv_backward",
                                      "norm",
                                      "elementwise",
                                      "dense",
                                      "pooling",
                                      "loss",
                                      "optimizer",
                                      "communication",
                                      "data",
                                      "gaps",
                                      "unassigned"};
static_assert(std::size(kKeys) == kStepCategories);

bool is_elementwise(std::string_view name) {
  if (const std::size_t space = name.rfind("::"); space != std::string_view::npos)
    name.remove_prefix(space + 2);
  name = name.substr(0, name.find('.'));
  if (name.ends_with('_')) name.remove_suffix(1);
  return kElementwiseOperators.find(" " + std::string(name) + " ") != std::string_view::npos;
}

std::optional<StepCategory> first_match(std::span<const Rule> rules, std::string_view name) {
  for (const Rule& rule : rules)
    for (const std::string_view part : rule.parts)
      if (name.find(part) != std::string_view::npos) return rule.category;
  return std::nullopt;
}

}  // namespace

std::string_view key_of(StepCategory category) {
  return kKeys[index_of(category)];
}

StepCategory category_of_instruction(std::string_view kind) {
  if (const auto category = first_match(kInstructionKinds, kind)) return *category;
  throw Error(ExitCode::bad_data,
              "profile.json has an op of unknown kind '{}'; use the plumbline that belongs to the run", kind);
}

std::optional<StepCategory> category_of_operator(std::string_view name) {
  if (const auto category = first_match(kOperatorRules, name)) return category;
  return is_elementwise(name) ? std::optional(elementwise) : std::nullopt;
}

std::optional<StepCategory> category_of_kernel(std::string_view name) {
  return first_match(kKernelRules, name);
}

std::optional<StepCategory> category_of_kernel_form(std::string_view name) {
  return first_match(kKernelFormRules, name);
}

}  // namespace plumb
