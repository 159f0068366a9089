// Our own kernel for some convolutions beside a library's engines: the first candidate.
#pragma once

#include <functional>
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

class OwnBeside final : public ConvEngine {
 public:
  // `make_own` returns null for problems that aren't the kernel's.
  using MakeOwn = std::function<std::unique_ptr<ConvPlan>(const ConvProblem&)>;
  OwnBeside(std::unique_ptr<ConvEngine> convolutions, MakeOwn make_own)
      : convolutions_(std::move(convolutions)), make_own_(std::move(make_own)) {}
  std::string library() const override { return convolutions_->library(); }
  std::unique_ptr<ConvCandidates> candidates(const ConvProblem& problem,
                                             std::size_t workspace_limit) override {
    std::unique_ptr<ConvCandidates> engines = convolutions_->candidates(problem, workspace_limit);
    std::unique_ptr<ConvPlan> own = make_own_(problem);
    if (!own || own->workspace_bytes() > workspace_limit) return engines;
    return std::make_unique<OwnBefore>(std::move(own), std::move(engines));
  }

 private:
  std::unique_ptr<ConvEngine> convolutions_;
  MakeOwn make_own_;
};

}  // namespace plumb::cuda
