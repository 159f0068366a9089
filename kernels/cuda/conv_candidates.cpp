// More candidates for convolutions than a library's engines: our own kernels for a ResNet's first
// convolution, and matrix products for 1x1 convolutions of stride 1.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "kernels/cuda/own/conv.h"
#include "kernels/cuda/vendors/conv.h"
#include "kernels/cuda/vendors/dense.h"

namespace plumb::cuda {
namespace {

using Addresses = std::span<std::byte* const>;

constexpr std::size_t kMaxAlgorithms = 4;
// Engines of the other library before them: a tuner may not come to the last.
constexpr std::size_t kEnginesBefore = 2;

bool is_product(const ConvProblem& p) {
  return p.kernel == 1 && p.stride == 1 && p.padding == 0 && p.groups == 1 && !is_fused(p);
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

// Lists the plan after the first `before` engines, which may be fewer.
void insert(ConvCandidates& listed, std::size_t before, const ConvPlan& plan) {
  const auto at = static_cast<std::ptrdiff_t>(std::min(before, listed.engines.size()));
  listed.engines.insert(listed.engines.begin() + at, {plan.engine, [=](std::string&) { return plan; }});
}

void insert_products(ConvCandidates& listed, const GemmEngine& products, const ConvProblem& problem,
                     std::size_t workspace_limit) {
  // The operand that is the first factor (kernels/program/instructions/conv.h).
  const std::size_t first = problem.pass == ConvPass::backward_weights ? 1 : 0;
  std::size_t before = kEnginesBefore;
  for (GemmPlan& product : products.plans(product_of(problem), workspace_limit, kMaxAlgorithms))
    insert(listed, before++,
           {product.engine, product.workspace_bytes,
            [=, multiply = std::move(product.run)](cudaStream_t stream, Addresses operands,
                                                   std::byte* workspace) {
              multiply(stream, {.a = operands[first], .b = operands[1 - first], .c = operands[2]}, workspace);
            }});
}

float* as_floats(std::byte* address) {
  return reinterpret_cast<float*>(address);
}

ConvPlan stem_plan(const ConvProblem& p, int multiprocessors) {
  const StemShape shape{.n = p.n, .h = p.h, .w = p.w, .out_h = p.out_h, .out_w = p.out_w};
  const bool sums = p.fusion.gathers_statistics;
  if (p.pass == ConvPass::backward_weights)
    return {kOwnKernel, stem_weights_workspace(shape, multiprocessors),
            [=, dtype = p.dtype](cudaStream_t stream, Addresses operands, std::byte* workspace) {
              launch_stem_backward_weights(dtype, shape, multiprocessors, operands[0], operands[1],
                                           as_floats(workspace), operands[2], stream);
            }};
  return {kOwnKernel, sums ? stem_forward_workspace(shape, multiprocessors) : 0,
          [=, dtype = p.dtype](cudaStream_t stream, Addresses operands, std::byte* workspace) {
            launch_stem_forward(dtype, shape, multiprocessors, operands[0], operands[1], operands[2],
                                sums ? as_floats(operands[3]) : nullptr, as_floats(workspace), stream);
          }};
}

}  // namespace

ConvEngine with_other_candidates(const ConvEngine& convolutions, const GemmEngine& products,
                                 int multiprocessors) {
  const auto candidates = [=, others = convolutions.candidates](const ConvProblem& problem,
                                                                std::size_t workspace_limit) {
    ConvCandidates listed = others(problem, workspace_limit);
    if (is_stem(problem)) {
      const ConvPlan plan = stem_plan(problem, multiprocessors);
      if (plan.workspace_bytes <= workspace_limit) insert(listed, 0, plan);
    } else if (is_product(problem)) {
      try {
        insert_products(listed, products, problem, workspace_limit);
      } catch (const Error&) {
        if (listed.engines.empty()) throw;
      }
    }
    return listed;
  };
  return {.library = convolutions.library + ", " + products.library, .candidates = candidates};
}

}  // namespace plumb::cuda
