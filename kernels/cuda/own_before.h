// Our own kernel as the first candidate for a convolution, before a library's engines.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "kernels/cuda/conv.h"

namespace plumb::cuda {

// The library may have no engines.
class OwnBefore final : public ConvCandidates {
 public:
  OwnBefore(std::unique_ptr<ConvPlan> own, std::unique_ptr<ConvCandidates> engines)
      : own_(std::move(own)), engines_(std::move(engines)) {}
  std::size_t size() const override { return 1 + engines_->size(); }
  std::string engine(std::size_t i) const override { return i == 0 ? kOwnKernel : engines_->engine(i - 1); }
  std::unique_ptr<ConvPlan> build(std::size_t i) override {
    return i == 0 ? std::move(own_) : engines_->build(i - 1);
  }
  std::string failure() const override { return engines_->failure(); }

 private:
  std::unique_ptr<ConvPlan> own_;
  std::unique_ptr<ConvCandidates> engines_;
};

}  // namespace plumb::cuda
