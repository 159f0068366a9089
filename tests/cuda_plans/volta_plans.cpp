// Prints the plans that cuDNN builds for the convolutions of ResNet-50, r50, r100 and y1 on a V100, which
// isn't there, and the workspace of each; exit code 1 if one has none. By itself, because the cuDNN that
// knows sm_70 is older than the one that this build may have: tests/volta_lane.sh --plans builds it.
#include <algorithm>
#include <cstdio>
#include <exception>

#include "absent_gpu.h"
#include "problems.h"

namespace plumb::cuda {
namespace {

// Compute capability 7.0; CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", and
// the Tesla V100 data sheet.
AbsentGpu v100() {
  return {.name = "Tesla V100-SXM2-16GB",
          .target = "v100-16gb",
          .multiprocessors = 80,
          .shared_bytes_per_block = 96 << 10,
          .shared_bytes_reserved = 0,
          .threads_per_multiprocessor = 2048,
          .blocks_per_multiprocessor = 32,
          .clock_khz = 1530000,
          .memory_clock_khz = 877000,
          .l2_bytes = 6L << 20};
}

template <typename Plans>
int missing_plans(const char* models, const Plans& plans_for, Precision precision) {
  const AbsentGpu gpu = v100();
  const auto engine = make_conv_engine({.device_properties_json = gpu.properties_json()});
  const std::vector<WantedPlan> wanted = plans_for(gpu.limits(), {.precision = precision, .fuse = true});
  int missing = 0;
  std::size_t largest = 0;
  for (const WantedPlan& plan : wanted) {
    const Planned planned = try_plan(*engine, plan.problem, plan.workspace_limit);
    missing += planned.built ? 0 : 1;
    largest = std::max(largest, planned.workspace_bytes);
  }
  std::printf("%s, %s: %zu of %zu plans built, largest workspace %.1f MiB\n", models,
              test_name(gpu, precision).c_str(), wanted.size() - missing, wanted.size(),
              static_cast<double>(largest) / (1 << 20));
  return missing;
}

}  // namespace
}  // namespace plumb::cuda

int main() {
  using namespace plumb;
  try {
    int missing = 0;
    for (const Precision precision : {Precision::fp16, Precision::fp32}) {
      missing += cuda::missing_plans("ResNet-50", cuda::wanted_plans, precision);
      missing += cuda::missing_plans("faces", cuda::wanted_face_plans, precision);
    }
    return missing == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "volta_plans: %s\n", error.what());
    return 1;
  }
}
