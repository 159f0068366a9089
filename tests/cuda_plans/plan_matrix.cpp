// cuda_plan_matrix [WORD…]: lets cuDNN plan every convolution of the GPU check and of README's commands for
// absent GPUs: ResNet-50 at 32, 64 and 224 pixels and r50, r100 and y1 at 112, batches from 1 to the largest
// that fits, every precision, fused and unfused; then each fused pattern around each convolution. Prints the
// problems without an engine, then tables in Markdown.
//
// Words narrow it down: GPUs (sm_75 sm_80 sm_89 sm_90 sm_100; sm_70 only if named, for a cuDNN that knows
// it), precisions (fp32 tf32 fp16 bf16), models (resnet50 r50 r100 y1), batches.
//
// Exit codes: 0 every plain convolution has an engine, 1 one has none, 64 usage.
#include <cudnn.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absent_gpu.h"
#include "fused_patterns.h"
#include "problems.h"

namespace plumb::cuda {
namespace {

using Names = std::set<std::string>;

constexpr std::size_t kAnyWorkspace = std::size_t{16} << 30;

struct Selection {
  Names gpus, precisions, models;
  std::set<std::int64_t> batches;
};

double mebibytes(std::size_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

struct Tally {
  std::size_t problems = 0, planned = 0, large = 0, workspace_bytes = 0;

  void add(const ConvProblem& problem, const Planned& plan) {
    ++problems;
    planned += plan.built ? 1 : 0;
    large += has_large_tensor(problem) ? 1 : 0;
    workspace_bytes = std::max(workspace_bytes, plan.workspace_bytes);
  }
  std::string cells() const {  // table cells: planned of problems, largest workspace
    if (problems == 0) return " – | – |";
    char text[64];
    std::snprintf(text, sizeof text, " %zu of %zu | %.1f |", planned, problems, mebibytes(workspace_bytes));
    return text;
  }
};

// One line per shape, with the batches that have no engine.
class Missing {
 public:
  void add(const ConvProblem& problem, const std::string& note) {
    batches_[shape_of(problem) + note].insert(problem.n);
  }
  bool has(const ConvProblem& problem) const { return batches_.contains(shape_of(problem)); }
  void print(const std::string& where) const {
    for (const auto& [shape, batches] : batches_) {
      std::printf("none for %s: %s; batch", where.c_str(), shape.c_str());
      for (const std::int64_t batch : batches) std::printf(" %ld", static_cast<long>(batch));
      std::printf("\n");
    }
  }

 private:
  static std::string shape_of(ConvProblem problem) {
    problem.n = 0;
    return text_of(problem);
  }
  std::map<std::string, std::set<std::int64_t>> batches_;
};

// One GPU and precision.
class Cell {
 public:
  Cell(const AbsentGpu& gpu, Precision precision)
      : gpu_(gpu), precision_(precision), name_(test_name(gpu, precision)) {}

  void run(const Selection& selection) {
    const auto begin = std::chrono::steady_clock::now();
    for (const Workload& workload : workloads()) {
      if (!selection.models.contains(workload.model)) continue;
      // One each, because it caches plans.
      in_order_ = engine_for(gpu_);
      any_order_ = engine_for(gpu_, false);
      for (const std::int64_t batch : batches(workload, selection)) run(workload, batch);
    }
    in_order_.reset();
    any_order_.reset();
    missing_.print(name_);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    std::printf("%s: %.0f s, %zu problems with more than 2^31 elements\n", name_.c_str(), passed.count(),
                plain_.large + fused_.large);
    std::fflush(stdout);
  }

  bool plans_all_plain_instructions() const { return plain_.planned == plain_.problems; }
  void print_steps() const {
    std::printf("| %s |%s%s\n", name_.c_str(), plain_.cells().c_str(), fused_.cells().c_str());
  }
  void print_patterns() const {
    if (patterns_.empty()) return;
    std::printf("| %s |", name_.c_str());
    for (const FusedGraph pattern : kFusedGraphs) {
      const auto tally = patterns_.find(pattern);
      std::printf("%s", (tally == patterns_.end() ? Tally{} : tally->second).cells().c_str());
    }
    std::printf("\n");
  }

 private:
  DescribeOptions options(const Workload& workload, bool fuse) const {
    return describe_options(workload, precision_, fuse);
  }

  std::set<std::int64_t> batches(const Workload& workload, const Selection& selection) const {
    const std::int64_t plain = largest_batch(workload, gpu_.limits(), options(workload, false));
    const std::int64_t fused = largest_batch(workload, gpu_.limits(), options(workload, true));
    std::printf("%s, %s at %ld pixels: largest batch %ld, fused %ld\n", name_.c_str(), workload.model.c_str(),
                static_cast<long>(workload.image_size), static_cast<long>(plain), static_cast<long>(fused));
    std::set<std::int64_t> fitting = selection.batches;
    std::erase_if(fitting, [&](std::int64_t batch) { return batch > fused; });
    fitting.insert({plain, fused});
    return fitting;
  }

  void run(const Workload& workload, std::int64_t batch) {
    const Graph graph = make_graph(workload, batch);
    const DeviceLimits limits = gpu_.limits();
    const std::vector<WantedPlan> plain = wanted_plans(graph, limits, options(workload, false));
    std::vector<WantedPlan> wanted = wanted_plans(graph, limits, options(workload, true));
    wanted.insert(wanted.end(), plain.begin(), plain.end());
    for (const WantedPlan& one : wanted)
      run(one.problem, one.workspace_limit, is_fused(one.problem) ? fused_ : plain_, known_);
    if (precision_ != Precision::fp16 && precision_ != Precision::bf16) return;
    for (const WantedPlan& one : plain) run_patterns(workload, one);
  }

  void run_patterns(const Workload& workload, const WantedPlan& plain) {
    for (const FusedGraph pattern : kFusedGraphs) {
      // Face backbones have PReLUs, which no engine supports.
      if (workload.model != "resnet50" && pattern != FusedGraph::statistics) continue;
      if (const auto problem = fused(pattern, plain.problem))
        run(*problem, plain.workspace_limit, patterns_[pattern], known_in_patterns_);
    }
  }

  // Each problem once, however many instructions share it.
  void run(const ConvProblem& problem, std::size_t workspace_limit, Tally& tally, Names& known) {
    if (!known.insert(text_of(problem)).second) return;
    if (is_stem(problem) && is_fused(problem)) return;  // our own kernel's alone
    // --deterministic uses none of the fused ones.
    ConvEngine& engine = is_fused(problem) ? *any_order_ : *in_order_;
    const Planned planned = plan_of(engine, problem, workspace_limit);
    tally.add(problem, planned);
    if (planned.built) return;
    // A shape without an engine at a smaller batch, with any workspace, has none at this batch.
    const Planned roomy = missing_.has(problem) ? Planned{} : plan_of(engine, problem, kAnyWorkspace);
    missing_.add(problem, roomy.built ? " (" + roomy.text + " wants more workspace)" : "");
  }

  AbsentGpu gpu_;
  Precision precision_;
  std::string name_;
  std::unique_ptr<ConvEngine> in_order_, any_order_;
  Names known_, known_in_patterns_;
  Tally plain_, fused_;
  std::map<FusedGraph, Tally> patterns_;
  Missing missing_;
};

void print_tables(const std::vector<Cell>& cells) {
  std::printf("\n| GPU, precision | plain planned | workspace, MiB | fused planned | workspace, MiB |\n");
  std::printf("|---|---|---|---|---|\n");
  for (const Cell& cell : cells) cell.print_steps();
  std::printf("\n| GPU, precision |");
  for (const FusedGraph pattern : kFusedGraphs) std::printf(" %s | MiB |", name_of(pattern));
  std::printf("\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Cell& cell : cells) cell.print_patterns();
}

// Null if a word matches nothing. Without a word for GPU, precision, model or batch, all the usual ones are
// selected.
std::optional<Selection> select(const std::vector<std::string>& words) {
  Selection selected;
  for (const std::string& word : words) {
    std::int64_t batch = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), batch);
    if (error == std::errc() && end == word.data() + word.size() && batch > 0)
      selected.batches.insert(batch);
    else if (Names{"sm_70", "sm_75", "sm_80", "sm_89", "sm_90", "sm_100"}.contains(word))
      selected.gpus.insert(word);
    else if (Names{"fp32", "tf32", "fp16", "bf16"}.contains(word))
      selected.precisions.insert(word);
    else if (Names{"resnet50", "r50", "r100", "y1"}.contains(word))
      selected.models.insert(word);
    else
      return std::nullopt;
  }
  if (selected.gpus.empty()) selected.gpus = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100"};
  if (selected.precisions.empty()) selected.precisions = {"fp32", "tf32", "fp16", "bf16"};
  if (selected.models.empty()) selected.models = {"resnet50", "r50", "r100", "y1"};
  if (selected.batches.empty()) selected.batches = {1, 2, 8, 16, 64, 128, 256, 512};
  return selected;
}

std::vector<Cell> cells_of(const Selection& selection) {
  std::vector<Cell> cells;
  for (const AbsentGpu& gpu : {v100(), t4(), a100(), l40s(), h200(), b200()}) {
    const DeviceLimits limits = gpu.limits();
    if (!selection.gpus.contains("sm_" + std::to_string(limits.compute_capability))) continue;
    for (const auto& [precision, flops] : limits.flops_per_second)
      if (selection.precisions.contains(std::string(name_of(precision)))) cells.emplace_back(gpu, precision);
  }
  return cells;
}

}  // namespace
}  // namespace plumb::cuda

int main(int count, char** arguments) {
  using namespace plumb::cuda;
  const auto selection = select({arguments + 1, arguments + count});
  if (!selection) {
    std::fprintf(stderr, "cuda_plan_matrix: wants GPUs (sm_70 to sm_100), precisions, models and batches\n");
    return 64;
  }
  try {
    std::printf("cuDNN %zu\n", cudnnGetVersion());
    std::vector<Cell> cells = cells_of(*selection);
    for (Cell& cell : cells) cell.run(*selection);
    print_tables(cells);
    return std::ranges::all_of(cells, &Cell::plans_all_plain_instructions) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cuda_plan_matrix: %s\n", error.what());
    return 1;
  }
}
