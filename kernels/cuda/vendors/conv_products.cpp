// 1x1 convolutions of stride 1 as matrix products: cuBLASLt's algorithms next to another library's engines.
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
         p.groups == 1 && !is_fused(p);
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
                       multiply(stream, {.a = operands[first], .b = operands[1 - first], .c = operands[2]},
                                workspace);
                     }});
  return plans;
}

}  // namespace

ConvEngine with_matrix_products(const ConvEngine& convolutions, const GemmEngine& products) {
  const auto candidates = [products, others = convolutions.candidates](const ConvProblem& problem,
                                                                       std::size_t workspace_limit) {
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
