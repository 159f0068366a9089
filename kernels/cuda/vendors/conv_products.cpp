// 1x1 convolutions of stride 1 as matrix products: cuBLASLt's algorithms beside another library's engines,
// and alone where the product also completes a gradient.
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/vendors/conv.h"
#include "kernels/cuda/vendors/dense.h"

namespace plumb::cuda {
namespace {

constexpr std::size_t kMaxAlgorithms = 4;
// Engines of the other library before them: a tuner may not come to the last.
constexpr std::size_t kEnginesBefore = 2;

bool is_product(const ConvProblem& p) {
  return p.layout == TensorLayout::nhwc && p.kernel == 1 && p.stride == 1 && p.padding == 0 &&
         p.groups == 1 && (!is_fused(p) || p.fusion.completes_gradient) && p.fusion.sums_for_norms == 0 &&
         !p.fusion.sums_gradient && p.fusion.added_stride == 1;
}

// out = in weight^T, d_in = d_out weight, d_weight = d_out^T in.
GemmProblem product_of(const ConvProblem& p) {
  const std::int64_t pixels = p.n * p.h * p.w;
  GemmProblem product{.m = pixels, .n = p.out_c, .k = p.c, .transpose_b = true};
  if (p.pass == ConvPass::backward_data) product = {.m = pixels, .n = p.c, .k = p.out_c};
  if (p.pass == ConvPass::backward_weights)
    product = {.m = p.out_c, .n = p.c, .k = pixels, .transpose_a = true};
  product.in = product.out = p.dtype;
  product.allow_tf32 = p.allow_tf32;
  product.adds = p.fusion.completes_gradient;
  if (product.adds) product.mask = ProductMask::applies;
  return product;
}

// Empty for what isn't a product.
std::vector<ConvPlan> product_plans(const GemmEngine& products, const ConvProblem& problem,
                                    std::size_t workspace_limit) {
  std::vector<ConvPlan> plans;
  if (!is_product(problem)) return plans;
  // The operand that is the first factor (kernels/program/instructions/conv.h).
  const std::size_t first = problem.pass == ConvPass::backward_weights ? 1 : 0;
  for (GemmPlan& product : products.plans(product_of(problem), workspace_limit, kMaxAlgorithms))
    plans.push_back({product.engine, product.workspace_bytes,
                     [=, multiply = std::move(product.run)](
                         cudaStream_t stream, std::span<std::byte* const> operands, std::byte* workspace) {
                       GemmOperands all{.a = operands[first], .b = operands[1 - first], .c = operands[2]};
                       if (operands.size() > 3) all.added = operands[3], all.relu_mask = operands[4];
                       multiply(stream, all, workspace);
                     }});
  return plans;
}

// A failure is an answer here: plain instructions do the same.
ConvCandidates completing(const GemmEngine& products, const ConvProblem& problem,
                          std::size_t workspace_limit) {
  ConvCandidates listed{
      .engines = {},
      .failure = products.library + " lists no algorithm that adds a gradient and masks the sum"};
  try {
    listed.insert(0, product_plans(products, problem, workspace_limit));
  } catch (const Error& error) {
    listed.failure = error.what();
  }
  return listed;
}

}  // namespace

ConvEngine with_matrix_products(const ConvEngine& convolutions, const GemmEngine& products) {
  const auto candidates = [products, others = convolutions.candidates](const ConvProblem& problem,
                                                                       std::size_t workspace_limit) {
    if (problem.fusion.completes_gradient) return completing(products, problem, workspace_limit);
    ConvCandidates listed = others(problem, workspace_limit);
    try {
      listed.insert(kEnginesBefore, product_plans(products, problem, workspace_limit));
    } catch (const Error&) {
      if (listed.engines.empty()) throw;
    }
    return listed;
  };
  return {.library = convolutions.library + ", " + products.library, .candidates = candidates};
}

}  // namespace plumb::cuda
