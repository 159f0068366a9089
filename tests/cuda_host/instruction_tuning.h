// Tuning on the emulated GPU: good and bad engines of every kind, behind cuDNN's interface.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/instruction_tuner.h"
#include "kernels/cuda/vendors/conv.h"
#include "tests/cuda_host/emulated/block.h"
#include "tests/cuda_host/runtime_state.h"
#include "tests/kernels/graph_builder.h"
#include "tests/scratch_folder.h"

namespace plumb::cuda {

// Behavior of a test engine when run.
struct FakeEngine {
  std::string name;
  std::uint64_t seconds = 0;  // by the emulated clock, so that a busy machine changes no order
  double joules = 0;
  bool builds = true;
  bool fails = false;    // reports an error, nothing else
  bool waits = false;    // for the stream, which a capture forbids
  bool poisons = false;  // makes every later call fail
  bool wrong = false;    // in one element of what a plain convolution writes
  std::size_t workspace_bytes = 64;
};

struct Counts {
  int listed = 0, run = 0;
  double joules = 0;  // of all runs
};

class FakePlan final : public ConvPlan {
 public:
  FakePlan(const FakeEngine& engine, Counts& counts) : engine_(engine), counts_(counts) {}
  std::size_t workspace_bytes() const override { return engine_.workspace_bytes; }
  std::string engine() const override { return engine_.name; }
  void run(cudaStream_t stream, std::span<std::byte* const> operands, std::byte* workspace) const override {
    ++counts_.run;
    if (engine_.fails) throw Error(ExitCode::internal, "the engine refused");
    if (engine_.waits) check(cudaStreamSynchronize(stream));
    const cudaError_t status = gpu::emulated::enqueue(
        stream, gpu::emulated::once([engine = engine_, workspace, written = operands[2], &counts = counts_] {
          counts.joules += engine.joules;
          if (engine.poisons) throw std::runtime_error("illegal address");
          workspace[0] = std::byte{1};
          if (engine.wrong) reinterpret_cast<std::uint16_t*>(written)[5] = 0x4000;  // 2
          gpu::emulated::skip_time(engine.seconds * 1'000'000'000);
        }));
    check(status);
  }

 private:
  FakeEngine engine_;
  Counts& counts_;
};

class FakeCandidates final : public ConvCandidates {
 public:
  FakeCandidates(const std::vector<FakeEngine>& engines, Counts& counts)
      : engines_(engines), counts_(counts) {}
  std::size_t size() const override { return engines_.size(); }
  std::string engine(std::size_t i) const override { return engines_.at(i).name; }
  std::unique_ptr<ConvPlan> build(std::size_t i) override {
    if (!engines_.at(i).builds) return nullptr;
    return std::make_unique<FakePlan>(engines_.at(i), counts_);
  }

 private:
  std::vector<FakeEngine> engines_;
  Counts& counts_;
};

class FakeConvolutions final : public ConvEngine {
 public:
  std::vector<FakeEngine> plain, fused;
  Counts counts;
  std::string library() const override { return "fake"; }
  std::unique_ptr<ConvCandidates> candidates(const ConvProblem& problem, std::size_t) override {
    ++counts.listed;
    return std::make_unique<FakeCandidates>(is_fused(problem) ? fused : plain, counts);
  }
};

// A library whose products all need a workspace of so many bytes.
class LargeProducts final : public GemmEngine {
 public:
  explicit LargeProducts(std::function<std::size_t(const GemmProblem&)> bytes_of)
      : bytes_of_(std::move(bytes_of)) {}
  std::string library() const override { return "fake"; }
  std::vector<std::unique_ptr<GemmPlan>> plans(const GemmProblem& problem, std::size_t workspace_limit,
                                               std::size_t most) override {
    if (bytes_of_(problem) > workspace_limit) return {};
    return products_->plans(problem, workspace_limit, most);
  }

 private:
  std::function<std::size_t(const GemmProblem&)> bytes_of_;
  const std::unique_ptr<GemmEngine> products_ = make_gemm_engine();
};

// All three compute statistics, two also normalize their inputs.
inline Graph three_convolutions() {
  GraphBuilder builder({2, 6, 6, 16});
  ValueId value = GraphBuilder::kImages;
  for (const int kernel : {3, 1, 3})
    value =
        builder.norm(builder.conv(value, 16, {.kernel = kernel, .padding = kernel / 2}), Activation::relu);
  return builder.classify(value);
}

class InstructionTuning : public testing::Test {
 protected:
  Tuning tune(bool time_engines, TuningCache* cache = nullptr) {
    const TuningOptions how{
        .time_engines = time_engines, .captures = captures, .joules = joules, .progress = progress};
    InstructionTuner tuner = make_tuner(how, cache);
    return tune_instructions(tuner, graph_, {.precision = precision}, limits(), how);
  }
  InstructionTuner make_tuner(const TuningOptions& how, TuningCache* cache = nullptr) {
    return {{.convolutions = convolutions,
             .products = *products_,
             .stream = stream_.get(),
             .warpgroup_multiprocessors = warpgroup_multiprocessors},
            graph_,
            rule_,
            how,
            cache};
  }
  DeviceLimits limits() const {
    DeviceLimits limits = *find_target("h200");
    limits.compute_capability = capability;
    return limits;
  }
  // Engines of all trials on plain or fused convolutions.
  static std::set<std::string> chosen(const EngineChoices& tuning) {
    std::set<std::string> engines;
    for (const auto& [name, choice] : tuning.instructions)
      if (name.ends_with("backward_weights") || name.ends_with("backward_data"))
        engines.insert(choice.engine);
    return engines;
  }

  FakeConvolutions convolutions;
  Graph graph_ = three_convolutions();
  Precision precision = Precision::fp16;
  int capability = 75;  // no fused engines
  int warpgroup_multiprocessors = 0;
  bool captures = true;
  std::function<std::optional<double>()> joules;  // an energy counter
  std::function<void(std::size_t, std::size_t)> progress;
  std::unique_ptr<GemmEngine> products_ = make_gemm_engine();
  const ScratchFolder folder_;

 private:
  const UpdateRule rule_;
  const Stream stream_ = make_stream();
};

}  // namespace plumb::cuda
