// 1x1 convolutions of stride 1 as matrix products: cuBLASLt's algorithms beside another library's engines,
// and alone where the product also completes a gradient.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/conv.h"
#include "kernels/cuda/dense.h"

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

class BothCandidates final : public ConvCandidates {
 public:
  BothCandidates(std::unique_ptr<ConvCandidates> engines, std::vector<std::unique_ptr<GemmPlan>> products,
                 bool of_weights)
      : engines_(std::move(engines)), products_(std::move(products)), of_weights_(of_weights) {
    for (const auto& product : products_) names_.push_back(product->engine());
    for (std::size_t i = 0; i < engines_->size() + products_.size(); ++i) {
      const std::size_t before = std::min(kEnginesBefore, engines_->size());
      const bool is_product = i >= before && i < before + products_.size();
      order_.push_back({is_product, is_product ? i - before : i < before ? i : i - products_.size()});
    }
  }

  std::size_t size() const override { return order_.size(); }
  std::string engine(std::size_t i) const override {
    const Place place = order_.at(i);
    return place.is_product ? names_[place.index] : engines_->engine(place.index);
  }
  std::unique_ptr<ConvPlan> build(std::size_t i) override {
    const Place place = order_.at(i);
    if (!place.is_product) return engines_->build(place.index);
    return std::make_unique<ProductPlan>(std::move(products_[place.index]), of_weights_);
  }
  std::string failure() const override { return engines_->failure(); }

 private:
  struct Place {
    bool is_product = false;
    std::size_t index = 0;  // among products_ or engines_
  };
  std::vector<Place> order_;
  std::unique_ptr<ConvCandidates> engines_;
  std::vector<std::unique_ptr<GemmPlan>> products_;
  std::vector<std::string> names_;
  bool of_weights_;
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
    if (!is_product(problem)) return engines;
    std::vector<std::unique_ptr<GemmPlan>> products;
    try {
      products = products_.plans(product_of(problem), workspace_limit, kMaxAlgorithms);
    } catch (const Error&) {
      if (engines->size() == 0) throw;
    }
    return std::make_unique<BothCandidates>(std::move(engines), std::move(products),
                                            problem.pass == ConvPass::backward_weights);
  }

 private:
  // A failure is an answer here: plain instructions do the same.
  std::unique_ptr<ConvCandidates> completing(const ConvProblem& problem, std::size_t workspace_limit) {
    std::vector<std::unique_ptr<GemmPlan>> products;
    std::string failure = products_.library() + " lists no algorithm that adds a gradient and masks the sum";
    try {
      if (is_product(problem))
        products = products_.plans(product_of(problem), workspace_limit, kMaxAlgorithms);
    } catch (const Error& error) {
      failure = error.what();
    }
    return std::make_unique<BothCandidates>(std::make_unique<NoCandidates>(failure), std::move(products),
                                            /*of_weights=*/false);
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
