// Categories of a training step's time, with one table of names for each side: our kinds of steps, a
// framework's operators, its GPU kernels.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace plumb {

enum class StepCategory {
  conv_forward,
  conv_backward_data,
  conv_backward_weights,
  conv_backward,  // of data or weights: operators and kernels that don't say which
  norm,
  elementwise,  // activations, additions, dropout, copies, reductions
  dense,        // dense layers and other products of matrices
  pooling,
  loss,  // with all of a margin head but its products
  optimizer,
  communication,
  data,
  gaps,       // nothing runs
  unassigned  // something runs that no table knows
};
inline constexpr std::size_t kStepCategories = static_cast<std::size_t>(StepCategory::unassigned) + 1;

std::string_view name_of(StepCategory category);  // "convolution forward", for people
std::string_view key_of(StepCategory category);   // "conv_forward", for JSON

template <typename T>
using ByCategory = std::array<T, kStepCategories>;
constexpr std::size_t index_of(StepCategory category) {
  return static_cast<std::size_t>(category);
}

// The category of a step's kind (kernels/program/program.h: name_of(Operation)). Throws Error(bad_data) for
// an unknown kind.
StepCategory category_of_instruction(std::string_view kind);

// The category of an operator as PyTorch's profiler names it ("aten::mkldnn_convolution"), by the first rule
// that fits. `gaps`: it only calls others (nodes of autograd, compiled regions); its own time is Python's or
// the engine's. Nothing: no rule fits.
std::optional<StepCategory> category_of_operator(std::string_view name);

// The category of a GPU kernel or copy by its own name: by the operation in it, or by its form ("sgemm"),
// which counts if the operator that launched the kernel has no category.
std::optional<StepCategory> category_of_kernel(std::string_view name);
std::optional<StepCategory> category_of_kernel_form(std::string_view name);

}  // namespace plumb
