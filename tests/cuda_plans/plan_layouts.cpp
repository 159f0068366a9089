// cuda_plan_layouts [GPU…]: strict fp32 in NHWC and in NCHW: which engines cuDNN ranks first for the
// convolutions of ResNet-50 (224 pixels) and r50 at batch 128, which of them compute by Winograd's algorithm,
// and their workspaces. Prints a line per convolution, then a table in Markdown. GPUs: sm_75 sm_80 sm_89
// sm_90 sm_100, or sm_70 for a cuDNN that knows it.
#include <cudnn.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "absent_gpu.h"
#include "problems.h"

namespace plumb::cuda {
namespace {

struct Tally {
  std::size_t problems = 0, winograd = 0, winograd_first = 0, with_copies = 0;
  std::size_t largest_workspace = 0, workspaces = 0;
};

// Bytes of the smaller activation: a workspace of less holds no copy in another layout.
std::size_t copy_bytes(const ConvProblem& p) {
  return sizeof(float) *
         static_cast<std::size_t>(p.n * std::min(p.h * p.w * p.c, p.out_h * p.out_w * p.out_c));
}

class Planner {
 public:
  explicit Planner(const AbsentGpu& gpu)
      : all_(make_conv_engine({.device_properties_json = gpu.properties_json()})),
        plain_(make_conv_engine({.winograd = false, .device_properties_json = gpu.properties_json()})) {}

  void add(const WantedPlan& wanted, Tally& tally) {
    const Planned first = plan_of(*all_, wanted.problem, wanted.workspace_limit);
    const std::vector<std::string> fast = winograd_engines(wanted);
    const bool is_fast = std::ranges::find(fast, first.text) != fast.end();
    std::printf("%8.1f MiB %-12s %s: %s%s\n", mebibytes(first.workspace_bytes), is_fast ? "winograd" : "",
                text_of(wanted.problem).c_str(), first.text.c_str(),
                fast.empty() || is_fast ? "" : (", winograd: " + fast.front()).c_str());
    tally.problems += 1;
    tally.winograd += !fast.empty();
    tally.winograd_first += is_fast;
    tally.with_copies += first.workspace_bytes >= copy_bytes(wanted.problem);
    tally.largest_workspace = std::max(tally.largest_workspace, first.workspace_bytes);
    tally.workspaces += first.workspace_bytes;
  }

  static double mebibytes(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

 private:
  // Those that build, best first.
  std::vector<std::string> winograd_engines(const WantedPlan& wanted) {
    const auto listed = all_->candidates(wanted.problem, wanted.workspace_limit);
    const auto without = plain_->candidates(wanted.problem, wanted.workspace_limit);
    std::vector<std::string> engines;
    for (std::size_t i = 0; i < listed->size(); ++i)
      if (!without->build(i) && listed->build(i)) engines.push_back(listed->engine(i));
    return engines;
  }

  std::unique_ptr<ConvEngine> all_, plain_;
};

std::string row_of(const AbsentGpu& gpu, TensorLayout layout, const Tally& tally) {
  char row[160];
  std::snprintf(row, sizeof row, "| %s | %s | %zu of %zu | %zu | %zu | %.1f | %.0f |\n",
                test_name(gpu, Precision::fp32).c_str(), std::string(name_of(layout)).c_str(), tally.winograd,
                tally.problems, tally.winograd_first, tally.with_copies,
                Planner::mebibytes(tally.largest_workspace), Planner::mebibytes(tally.workspaces));
  return row;
}

int run(const std::vector<std::string>& names) {
  std::printf("cuDNN %zu\n", cudnnGetVersion());
  std::string table =
      "\n| GPU | layout | a Winograd engine builds | is first | room for copies | largest workspace, MiB | "
      "all, MiB |\n|---|---|---|---|---|---|---|\n";
  for (const AbsentGpu& gpu : {v100(), t4(), a100(), l40s(), h200(), b200()}) {
    const std::string name = "sm_" + std::to_string(gpu.limits().compute_capability);
    if (std::ranges::find(names, name) == names.end()) continue;
    for (const TensorLayout layout : {TensorLayout::nhwc, TensorLayout::nchw}) {
      Planner planner(gpu);
      Tally tally;
      for (const Workload& workload : {Workload{"resnet50", 224}, {"r50", 112}}) {
        DescribeOptions options = describe_options(workload, Precision::fp32, false);
        options.layout = layout;
        for (const WantedPlan& wanted : wanted_plans(make_graph(workload, kBatch), gpu.limits(), options))
          planner.add(wanted, tally);
      }
      table += row_of(gpu, layout, tally);
      std::fflush(stdout);
    }
  }
  std::printf("%s", table.c_str());
  return 0;
}

}  // namespace
}  // namespace plumb::cuda

int main(int count, char** arguments) {
  std::vector<std::string> names(arguments + 1, arguments + count);
  if (names.empty()) names = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100"};
  try {
    return plumb::cuda::run(names);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cuda_plan_layouts: %s\n", error.what());
    return 1;
  }
}
