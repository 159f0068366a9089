// Convolutions by cuDNN: graph, the engines that heuristics name for it, the first that builds or the
// fastest.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "kernels/cuda/conv.h"
#include "kernels/cuda/conv_cudnn_graphs.h"
#include "kernels/cuda/plan_cache.h"
#include "kernels/cuda/runtime.h"
#include "models/error.h"

namespace plumb::cuda {
namespace {

namespace fe = cudnn_frontend;
using cuda::check;

constexpr std::size_t kMostTensors = 16;  // of one graph
constexpr std::size_t kTimedEngines = 8;  // autotuning looks at so many
// Runs of a burst follow one another, so that only the first waits for the host to enqueue it.
constexpr int kRunsOfBurst = 4, kTimedBursts = 3;  // of each engine; the fastest burst counts

std::string version_text(std::size_t version) {  // 91900: 9.19.0 (cudnn_version.h)
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string library_text() {
  return "cuDNN " + version_text(cudnnGetVersion());
}

void check(cudnnStatus_t status, const std::string& doing) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const bool absent = status == CUDNN_STATUS_NOT_INITIALIZED;
  const ExitCode cause = absent ? ExitCode::unavailable : cause_of_failure();
  throw Error(cause, library_text() + " failed while " + doing + ": " + cudnnGetErrorString(status) +
                         (absent ? "; check that its libraries are all of one version and fit the driver"
                                 : remedy_for(cause)));
}

// A frontend's message may have many lines; the first says what happened.
void check(fe::error_t status, const std::string& doing, const std::string& remedy = "") {
  if (status.is_good()) return;
  const std::string message = status.get_message();
  const ExitCode cause = cause_of_failure();
  throw Error(cause, library_text() + " failed while " + doing + ": " +
                         message.substr(0, message.find('\n')) +
                         (cause == ExitCode::out_of_memory ? remedy_for(cause) : remedy));
}

struct HandleDeleter {
  void operator()(cudnnHandle_t handle) const { cudnnDestroy(handle); }
};
using Handle = std::unique_ptr<std::remove_pointer_t<cudnnHandle_t>, HandleDeleter>;

// Engines that don't keep the product's word on numbers: products of what is stored, summed up in f32, the
// same bits from run to run, and f32 that stays f32 unless TF32 is asked for.
std::vector<fe::NumericalNote_t> unwanted_notes(const ConvProblem& problem) {
  std::vector<fe::NumericalNote_t> notes{fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION,
                                         fe::NumericalNote_t::DOWN_CONVERT_INPUTS,
                                         fe::NumericalNote_t::NONDETERMINISTIC};
  if (problem.dtype != DType::f32) {
    notes.push_back(fe::NumericalNote_t::WINOGRAD);  // its transforms are rounded to half
  } else if (!problem.allow_tf32) {
    notes.push_back(fe::NumericalNote_t::TENSOR_CORE);
  }
  return notes;
}

// A graph with one engine chosen.
class CudnnPlan : public ConvPlan {
 public:
  // `remedy` ends the sentence of an engine that fails when it is run.
  CudnnPlan(cudnnHandle_t handle, ConvGraph graph, std::string text, std::string remedy)
      : handle_(handle), graph_(std::move(graph)), text_(std::move(text)), remedy_(std::move(remedy)) {
    check(graph_.graph->get_workspace_size(workspace_bytes_), "planning " + text_);
    check(graph_.graph->get_plan_name(engine_), "planning " + text_);
  }

  std::size_t workspace_bytes() const override { return static_cast<std::size_t>(workspace_bytes_); }
  std::string engine() const override { return engine_; }
  void run(cudaStream_t stream, std::span<std::byte* const> operands, std::byte* workspace) const override {
    check(enqueue(stream, operands, workspace), "running " + text_, remedy_);
  }

  fe::error_t enqueue(cudaStream_t stream, std::span<std::byte* const> operands, std::byte* workspace) const {
    std::array<void*, kMostTensors> addresses{};
    const std::vector<TensorPlace>& places = graph_.places;
    for (std::size_t i = 0; i < places.size(); ++i) {
      addresses.at(i) = operands[places[i].operand] + places[i].offset;
    }
    check(cudnnSetStream(handle_, stream), "running " + text_);
    return graph_.graph->execute(handle_, addresses.data(), static_cast<int>(places.size()), workspace);
  }

  const std::vector<TensorPlace>& places() const { return graph_.places; }

 private:
  cudnnHandle_t handle_;
  ConvGraph graph_;
  std::string text_, remedy_, engine_;
  std::int64_t workspace_bytes_ = 0;
};

// Steps with the same problem share one.
class SharedPlan : public ConvPlan {
 public:
  explicit SharedPlan(std::shared_ptr<const ConvPlan> plan) : plan_(std::move(plan)) {}
  std::size_t workspace_bytes() const override { return plan_->workspace_bytes(); }
  std::string engine() const override { return plan_->engine(); }
  void run(cudaStream_t stream, std::span<std::byte* const> operands, std::byte* workspace) const override {
    plan_->run(stream, operands, workspace);
  }

 private:
  std::shared_ptr<const ConvPlan> plan_;
};

// Zeros for a plan's operands, and its workspace.
struct Scratch {
  Scratch(const CudnnPlan& plan, cudaStream_t stream)
      : workspace(allocate_device(plan.workspace_bytes() + 1)) {
    std::vector<std::size_t> sizes;
    for (const TensorPlace& place : plan.places()) {
      sizes.resize(std::max(sizes.size(), place.operand + 1), 1);
      sizes[place.operand] = std::max(sizes[place.operand], place.offset + place.bytes);
    }
    for (const std::size_t bytes : sizes) {
      memory.push_back(allocate_device(bytes));
      operands.push_back(memory.back().get());
      check(cudaMemsetAsync(operands.back(), 0, bytes, stream));
    }
  }
  std::vector<DeviceMemory> memory;
  std::vector<std::byte*> operands;
  DeviceMemory workspace;
};

std::optional<float> milliseconds_of_burst(const CudnnPlan& plan, const Scratch& scratch,
                                           cudaStream_t stream) {
  const Event begin = make_timing_event(), end = make_timing_event();
  check(cudaEventRecord(begin.get(), stream));
  for (int i = 0; i < kRunsOfBurst; ++i) {
    if (plan.enqueue(stream, scratch.operands, scratch.workspace.get()).is_bad()) return std::nullopt;
  }
  check(cudaEventRecord(end.get(), stream));
  check(cudaEventSynchronize(end.get()));
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
  return milliseconds;
}

// Nothing if the engine fails, as some do whatever they promised, or if there is no memory to try it.
std::optional<float> milliseconds_of(const CudnnPlan& plan) try {
  const Stream stream = make_stream();
  const Scratch scratch(plan, stream.get());
  float fastest = std::numeric_limits<float>::max();
  for (int burst = 0; burst <= kTimedBursts; ++burst) {
    const std::optional<float> milliseconds = milliseconds_of_burst(plan, scratch, stream.get());
    if (!milliseconds) return std::nullopt;
    if (burst > 0) fastest = std::min(fastest, *milliseconds);  // the first warms up
  }
  return fastest;
} catch (const Error& error) {
  if (error.code() != ExitCode::out_of_memory) throw;
  return std::nullopt;
}

std::string current_gpu() {
  int device = 0;
  check(cudaGetDevice(&device));
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device));
  return properties.name;
}

std::shared_ptr<const fe::DeviceProperties> read_properties(const std::string& json) {
  std::vector<std::uint8_t> bytes(json.begin(), json.end());
  bytes.push_back(0);
  auto properties = std::make_shared<fe::DeviceProperties>();
  check(properties->deserialize(bytes), "reading a GPU's properties");
  return properties;
}
std::string name_of_gpu(const std::string& properties_json) {
  const nlohmann::json json = nlohmann::json::parse(properties_json, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("deviceName") || !json["deviceName"].is_string()) return "";
  return json["deviceName"].get<std::string>();
}

class CudnnEngine : public ConvEngine {
 public:
  explicit CudnnEngine(const ConvEngineOptions& options) {
    if (options.device_properties_json.empty()) {
      cudnnHandle_t handle = nullptr;
      check(cudnnCreate(&handle), "starting");
      handle_.reset(handle);
    } else {
      properties_ = read_properties(options.device_properties_json);
    }
    if (!options.autotune) return;
    gpu_ = handle_ ? current_gpu() : name_of_gpu(options.device_properties_json);
    cache_.emplace(plan_cache_file());
  }

  std::unique_ptr<ConvPlan> plan(const ConvProblem& problem, std::size_t workspace_limit) override {
    const std::string text = text_of(problem);
    std::shared_ptr<const CudnnPlan>& known = plans_[{text, workspace_limit}];
    try {
      if (!known) known = choose(problem, text, workspace_limit);
    } catch (const fe::cudnnException& exception) {
      throw Error(ExitCode::internal,
                  library_text() + " failed while planning " + text + ": " + exception.what());
    }
    return std::make_unique<SharedPlan>(known);
  }

 private:
  // The graph with the engines that heuristics name for it, best first, none of them built yet.
  ConvGraph candidates(const ConvProblem& problem, const std::string& text,
                       std::size_t workspace_limit) const {
    ConvGraph built = build_graph(problem);
    fe::graph::Graph& graph = *built.graph;
    if (properties_) graph.set_device_properties(properties_);
    graph.set_cuda_graph_retention(fe::CudaGraphRetention_t::NONE);
    check(graph.validate(), "describing " + text);
    check(properties_ ? graph.build_operation_graph() : graph.build_operation_graph(handle_.get()),
          "describing " + text);
    const auto status = graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
    if (status.is_bad()) throw nothing_computes(problem, text, workspace_limit);
    graph.deselect_numeric_notes(unwanted_notes(problem));
    graph.deselect_workspace_greater_than(static_cast<std::int64_t>(workspace_limit));
    return built;
  }

  // The first engine that builds; where `wanted` is given, only the one of that name.
  std::shared_ptr<const CudnnPlan> first_that_builds(const ConvProblem& problem, const std::string& text,
                                                     std::size_t workspace_limit,
                                                     const std::optional<std::string>& wanted) const {
    ConvGraph built = candidates(problem, text, workspace_limit);
    for (std::int64_t i = 0; i < built.graph->get_execution_plan_count(); ++i) {
      std::string name;
      if (wanted && (built.graph->get_plan_name_at_index(i, name).is_bad() || name != *wanted)) continue;
      if (built.graph->build_plan_at_index(i).is_bad()) continue;
      return std::make_shared<const CudnnPlan>(handle_.get(), std::move(built), text, remedy_of(problem));
    }
    return nullptr;
  }

  std::shared_ptr<const CudnnPlan> choose(const ConvProblem& problem, const std::string& text,
                                          std::size_t workspace_limit) {
    std::optional<std::string> wanted;
    if (cache_) {
      const std::string key = plan_cache_key(gpu_, library_text(), text);
      wanted = cache_->find(key);
      if (wanted) {
        if (auto plan = first_that_builds(problem, text, workspace_limit, wanted)) return plan;
      }
      wanted = handle_ ? fastest_engine(problem, text, workspace_limit) : std::nullopt;
      if (wanted) cache_->remember(key, *wanted);
    }
    auto plan = first_that_builds(problem, text, workspace_limit, wanted);
    if (!plan) throw nothing_computes(problem, text, workspace_limit);
    return plan;
  }

  std::optional<std::string> fastest_engine(const ConvProblem& problem, const std::string& text,
                                            std::size_t workspace_limit) const {
    ConvGraph listed = candidates(problem, text, workspace_limit);
    std::optional<std::string> fastest;
    float least_milliseconds = std::numeric_limits<float>::max();
    std::set<std::string> seen;  // both lists of heuristics may name an engine
    std::size_t timed = 0;
    for (std::int64_t i = 0; i < listed.graph->get_execution_plan_count() && timed < kTimedEngines; ++i) {
      std::string name;
      if (listed.graph->get_plan_name_at_index(i, name).is_bad() || !seen.insert(name).second) continue;
      const auto plan = first_that_builds(problem, text, workspace_limit, name);
      if (!plan) continue;
      ++timed;
      const std::optional<float> milliseconds = milliseconds_of(*plan);
      if (!milliseconds || *milliseconds >= least_milliseconds) continue;
      least_milliseconds = *milliseconds;
      fastest = name;
    }
    return fastest;
  }

  static bool is_fused(const ConvProblem& problem) {
    return problem.fusion.normalizes_input || problem.fusion.gathers_statistics ||
           problem.kind == StepKind::conv_norm_backward_data;
  }
  static std::string remedy_of(const ConvProblem& problem) {
    return is_fused(problem) ? "; --fusion off does without it"
                             : "; --autotune passes over engines that fail";
  }
  static Error nothing_computes(const ConvProblem& problem, const std::string& text,
                                std::size_t workspace_limit) {
    return {ExitCode::internal,
            library_text() + " has no engine for " + text + " within " +
                std::to_string(workspace_limit >> 20) + " MiB of workspace" +
                (is_fused(problem) ? "; --fusion off does without it" : "; try another precision")};
  }

  Handle handle_;                                           // of the current device, or
  std::shared_ptr<const fe::DeviceProperties> properties_;  // of one that need not be there
  std::string gpu_;
  std::optional<PlanCache> cache_;  // autotuning
  std::map<std::pair<std::string, std::size_t>, std::shared_ptr<const CudnnPlan>> plans_;
};

}  // namespace

std::unique_ptr<ConvEngine> make_conv_engine(const ConvEngineOptions& options) {
  if (cudnnGetVersion() < CUDNN_VERSION) {
    throw Error(ExitCode::unavailable,
                library_text() + " was loaded, but this program was built against " +
                    version_text(CUDNN_VERSION) +
                    "; install that one or a newer one, or put it first in LD_LIBRARY_PATH");
  }
  return std::make_unique<CudnnEngine>(options);
}

}  // namespace plumb::cuda
