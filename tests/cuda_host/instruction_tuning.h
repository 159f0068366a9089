// Tuning on the emulated GPU: good and bad engines of every kind, behind cuDNN's interface.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
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
  bool builds = true;
  bool fails = false;    // reports an error, nothing else
  bool poisons = false;  // makes every later call fail
  std::size_t workspace_bytes = 64;
};

struct Counts {
  int listed = 0, run = 0;
};

inline ConvPlan plan_of(const FakeEngine& engine, Counts& counts) {
  const auto run = [=, &counts](cudaStream_t stream, std::span<std::byte* const>, std::byte* workspace) {
    ++counts.run;
    if (engine.fails) throw Error(ExitCode::internal, "the engine refused");
    const cudaError_t status =
        gpu::emulated::enqueue(stream, gpu::emulated::once([engine, workspace] {
                                 if (engine.poisons) throw std::runtime_error("illegal address");
                                 workspace[0] = std::byte{1};
                                 gpu::emulated::skip_time(engine.seconds * 1'000'000'000);
                               }));
    check(status);
  };
  return {engine.name, engine.workspace_bytes, run};
}

// A library of such engines.
struct FakeConvolutions {
  std::vector<FakeEngine> plain, fused;
  Counts counts;
  const ConvEngine engine{
      .library = "fake", .candidates = [this](const ConvProblem& problem, std::size_t) {
        ++counts.listed;
        ConvCandidates listed;
        for (const FakeEngine& one : is_fused(problem) ? fused : plain)
          listed.engines.push_back({one.name, [=, this](std::string&) {
                                      return one.builds ? std::optional(plan_of(one, counts)) : std::nullopt;
                                    }});
        return listed;
      }};
};

// A library whose products all need a workspace of so many bytes.
inline GemmEngine large_products(std::function<std::size_t(const GemmProblem&)> bytes_of) {
  return {.library = "fake",
          .plans = [products = make_gemm_engine(), bytes_of](const GemmProblem& problem,
                                                             std::size_t workspace_limit, std::size_t most) {
            return bytes_of(problem) > workspace_limit ? std::vector<GemmPlan>()
                                                       : products.plans(problem, workspace_limit, most);
          }};
}

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
    TuningCache none("", "");
    InstructionTuner tuner =
        make_tuner({.time_engines = time_engines, .progress = progress}, cache ? *cache : none);
    return tuner.tune({.precision = precision}, limits());
  }
  InstructionTuner make_tuner(const TuningOptions& how, TuningCache& cache) {
    return {{.convolutions = convolutions.engine, .products = products_, .stream = stream_.get()},
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
  static std::set<std::string> chosen(const Tuning& tuning) {
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
  std::function<void(std::size_t, std::size_t)> progress;
  GemmEngine products_ = make_gemm_engine();
  const ScratchFolder folder_;

 private:
  const UpdateRule rule_;
  const Stream stream_ = make_stream();
};

}  // namespace plumb::cuda
