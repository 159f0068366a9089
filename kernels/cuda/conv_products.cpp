#include "kernels/cuda/conv_products.h"

#include <utility>
#include <vector>

namespace plumb::cuda {
namespace {

constexpr std::size_t kMaxAlgorithms = 4;

bool is_product(const ConvProblem& p) {
  return p.kernel == 1 && p.stride == 1 && p.padding == 0 && p.groups == 1 && !is_fused(p);
}

// The instruction's operands that are the two factors, by index (kernels/instructions/conv.h).
struct Factors {
  std::size_t a = 0, b = 1, c = 2;
};
Factors factors_of(ConvPass pass) {
  if (pass == ConvPass::backward_weights) return {.a = 1, .b = 0};  // d_weight = d_out^T in
  return {};                                                        // out = in weight^T, d_in = d_out weight
}

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

class ProductPlan final : public ConvPlan {
 public:
  ProductPlan(std::unique_ptr<GemmPlan> plan, const Factors& factors)
      : plan_(std::move(plan)), factors_(factors) {}
  std::size_t workspace_bytes() const override { return plan_->workspace_bytes(); }
  std::string engine() const override { return plan_->engine(); }
  void run(cudaStream_t stream, std::span<std::byte* const> operands, std::byte* workspace) const override {
    plan_->run(stream, {.a = operands[factors_.a], .b = operands[factors_.b], .c = operands[factors_.c]},
               workspace);
  }

 private:
  std::unique_ptr<GemmPlan> plan_;
  Factors factors_;
};

class BothCandidates final : public ConvCandidates {
 public:
  BothCandidates(std::unique_ptr<ConvCandidates> engines, std::vector<std::unique_ptr<GemmPlan>> products,
                 const Factors& factors)
      : engines_(std::move(engines)), products_(std::move(products)), factors_(factors) {
    for (const auto& product : products_) names_.push_back(product->engine());
  }

  std::size_t size() const override { return engines_->size() + products_.size(); }
  std::string engine(std::size_t i) const override {
    return i < engines_->size() ? engines_->engine(i) : names_.at(i - engines_->size());
  }
  std::unique_ptr<ConvPlan> build(std::size_t i) override {
    if (i < engines_->size()) return engines_->build(i);
    return std::make_unique<ProductPlan>(std::move(products_.at(i - engines_->size())), factors_);
  }

 private:
  std::unique_ptr<ConvCandidates> engines_;
  std::vector<std::unique_ptr<GemmPlan>> products_;
  std::vector<std::string> names_;
  Factors factors_;
};

class ProductsBeside final : public ConvEngine {
 public:
  ProductsBeside(std::unique_ptr<ConvEngine> convolutions, GemmEngine& products)
      : convolutions_(std::move(convolutions)), products_(products) {}

  std::string library() const override { return convolutions_->library() + ", " + products_.library(); }
  std::unique_ptr<ConvCandidates> candidates(const ConvProblem& problem,
                                             std::size_t workspace_limit) override {
    std::unique_ptr<ConvCandidates> engines = convolutions_->candidates(problem, workspace_limit);
    if (!is_product(problem)) return engines;
    return std::make_unique<BothCandidates>(
        std::move(engines), products_.plans(product_of(problem), workspace_limit, kMaxAlgorithms),
        factors_of(problem.pass));
  }

 private:
  std::unique_ptr<ConvEngine> convolutions_;
  GemmEngine& products_;
};

}  // namespace

std::unique_ptr<ConvEngine> with_matrix_products(std::unique_ptr<ConvEngine> convolutions,
                                                 GemmEngine& products) {
  return std::make_unique<ProductsBeside>(std::move(convolutions), products);
}

}  // namespace plumb::cuda
