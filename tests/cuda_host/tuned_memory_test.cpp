// Tuned plans that don't fit, on emulated GPUs, one per rank.
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>
#include <string>

#include "bench/run/stages.h"
#include "kernels/cuda/runtime/runtime.h"
#include "tests/bench/expect_error.h"
#include "tests/bench/run/small_resnet.h"
#include "tests/comm/mpi/mpi_test.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

class TunedMemory : public MpiTest {
 protected:
  void SetUp() override {
    setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);
    if (!tuned_.empty()) cache_.write(tuned_file_, tuned_);
  }
  void TearDown() override { unsetenv("XDG_CACHE_HOME"); }

  DescribedStep describe_step() {
    BenchOptions options = default_options("bench_resnet50", small_resnet());
    options.device = DeviceChoice::cuda;
    options.precision = Precision::fp16;
    options.batch_per_device = 2;
    options.image_size = 32;
    options.threads = 1;
    options.quiet = true;
    return DescribedStep(ResolvedRun(job(), options));
  }
  // As a run tunes and plans its step.
  PlannedStep plan() {
    PlannedStep step(describe_step());
    if (job().rank() != 0 || !tuned_.empty()) return step;
    tuned_file_ = "plumbline/tuning/" + cache_.list("plumbline/tuning").front();
    tuned_ = read_text(cache_ / tuned_file_);
    return step;
  }

  // What rank 0 remembers: fused engines take a second.
  void slow_fused_engines_down() {
    if (job().rank() != 0) return;
    auto tuned = nlohmann::json::parse(tuned_);
    for (auto& [problem, trials] : tuned.at("problems").items())
      if (problem.find("statistics") != std::string::npos ||
          problem.find("normalizes") != std::string::npos || problem.starts_with("conv_norm"))
        for (auto& trial : trials) trial["seconds"] = 1;
    cache_.write(tuned_file_, tuned.dump());
  }

  // All but `bytes` of the last rank's GPU.
  cuda::DeviceMemory take_all_but(double bytes) {
    if (job().rank() != job().size() - 1) return {};
    std::size_t free = 0, total = 0;
    cuda::check(cudaMemGetInfo(&free, &total));
    return cuda::allocate_device(free - static_cast<std::size_t>(bytes));
  }

  ScratchFolder cache_;
  static inline std::string tuned_file_, tuned_;  // what rank 0 remembers of the first step
};

// Tuning may find plain instructions faster, which need more memory.
TEST_F(TunedMemory, NamesTheOptionThatNeedsLessWhereTheFastestPlanDoesNotFitOneRank) {
  if (job().size() != 2) return;
  plan();
  slow_fused_engines_down();
  const PlannedStep fastest = plan();
  EXPECT_FALSE(fastest.tuning.plain.empty());
  const auto taken = take_all_but(fastest.plan.needed_bytes - 1);
  expect_error(ExitCode::out_of_memory, {"--no-autotune"}, [&] { plan(); });
}

}  // namespace
}  // namespace plumb
