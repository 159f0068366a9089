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

class ProductPlan final : public ConvPlan {
 public:
  ProductPlan(std::unique_ptr<GemmPlan> plan, bool of_weights)
      : plan_(std::move(plan)), first_(of_weights ? 1 : 0) {}
  std::size_t workspace_bytes() const override { return plan_->workspace_bytes(); }
  std::string engine() const override { return plan_->engine(); }
  void run(cudaStream_t stream, std::span<std::byte* const> operands, std::byte* workspace) const override {
    GemmOperands all{.a = operands[first_], .b = operands[1 - first_], .c = operands[2]};
    if (operands.size() > 3) all.added = operands[3], all.relu_mask = operands[4];
    plan_->run(stream, all, workspace);
  }

 private:
  std::unique_ptr<GemmPlan> plan_;
  std::size_t first_ =
      0;  // index of the operand that is the first factor (kernels/program/instructions/conv.h)
};

class ProductsBeside final : public ConvEngine {
 public:
  ProductsBeside(std::unique_ptr<ConvEngine> convolutions, GemmEngine& products)
      : convolutions_(std::move(convolutions)), products_(products) {}

  std::string library() const override { return convolutions_->library() + ", " + products_.library(); }
  std::unique_ptr<ConvCandidates> candidates(const ConvProblem& problem,
                                             std::size_t workspace_limit) override {
    if (problem.fusion.completes_gradient) return completing(problem, workspace_limit);
    std::unique_ptr<ConvCandidates> engines = convolutions_->candidates(problem, workspace_limit);
    std::vector<std::unique_ptr<ConvPlan>> products;
    try {
      products = plans(problem, workspace_limit);
    } catch (const Error&) {
      if (engines->size() == 0) throw;
    }
    return list_among(std::move(engines), std::move(products), kEnginesBefore);
  }

 private:
  // None for what isn't a product.
  std::vector<std::unique_ptr<ConvPlan>> plans(const ConvProblem& problem, std::size_t workspace_limit) {
    std::vector<std::unique_ptr<ConvPlan>> plans;
    if (!is_product(problem)) return plans;
    for (auto& product : products_.plans(product_of(problem), workspace_limit, kMaxAlgorithms))
      plans.push_back(
          std::make_unique<ProductPlan>(std::move(product), problem.pass == ConvPass::backward_weights));
    return plans;
  }

  // A failure is an answer here: plain instructions do the same.
  std::unique_ptr<ConvCandidates> completing(const ConvProblem& problem, std::size_t workspace_limit) {
    std::vector<std::unique_ptr<ConvPlan>> products;
    std::string failure = products_.library() + " lists no algorithm that adds a gradient and masks the sum";
    try {
      products = plans(problem, workspace_limit);
    } catch (const Error& error) {
      failure = error.what();
    }
    return list_among(std::make_unique<NoCandidates>(failure), std::move(products), 0);
  }

  std::unique_ptr<ConvEngine> convolutions_;
  GemmEngine& products_;
};

}  // namespace

std::unique_ptr<ConvEngine> with_matrix_products(std::unique_ptr<ConvEngine> convolutions,
                                                 GemmEngine& products) {
  return std::make_unique<ProductsBeside>(std::move(convolutions), products);
}

}  // namespace plumb::cuda
