// Our own kernel for some convolutions among a library's engines.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "kernels/cuda/conv.h"

namespace plumb::cuda {

// The library may have fewer engines than come before our own.
class OwnAmong final : public ConvCandidates {
 public:
  OwnAmong(std::unique_ptr<ConvPlan> own, std::unique_ptr<ConvCandidates> engines, std::size_t before)
      : own_(std::move(own)), engines_(std::move(engines)), before_(std::min(before, engines_->size())) {}
  std::size_t size() const override { return 1 + engines_->size(); }
  std::string engine(std::size_t i) const override {
    return i == before_ ? kOwnKernel : engines_->engine(i < before_ ? i : i - 1);
  }
  std::unique_ptr<ConvPlan> build(std::size_t i) override {
    return i == before_ ? std::move(own_) : engines_->build(i < before_ ? i : i - 1);
  }
  std::string failure() const override { return engines_->failure(); }

 private:
  std::unique_ptr<ConvPlan> own_;
  std::unique_ptr<ConvCandidates> engines_;
  std::size_t before_;
};

class OwnBeside final : public ConvEngine {
 public:
  // `make_own` returns null for problems that aren't the kernel's. So many of the library's engines come
  // before ours: without tuning the first one is taken.
  using MakeOwn = std::function<std::unique_ptr<ConvPlan>(const ConvProblem&)>;
  OwnBeside(std::unique_ptr<ConvEngine> convolutions, MakeOwn make_own, std::size_t before = 0)
      : convolutions_(std::move(convolutions)), make_own_(std::move(make_own)), before_(before) {}
  std::string library() const override { return convolutions_->library(); }
  std::unique_ptr<ConvCandidates> candidates(const ConvProblem& problem,
                                             std::size_t workspace_limit) override {
    std::unique_ptr<ConvCandidates> engines = convolutions_->candidates(problem, workspace_limit);
    std::unique_ptr<ConvPlan> own = make_own_(problem);
    if (!own || own->workspace_bytes() > workspace_limit) return engines;
    return std::make_unique<OwnAmong>(std::move(own), std::move(engines), before_);
  }

 private:
  std::unique_ptr<ConvEngine> convolutions_;
  MakeOwn make_own_;
  std::size_t before_;
};

}  // namespace plumb::cuda
