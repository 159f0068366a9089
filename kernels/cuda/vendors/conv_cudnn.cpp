// Convolutions by cuDNN: one graph per problem, and the engines that its heuristics return for it.
#include <dlfcn.h>

#include <array>
#include <set>
#include <utility>

#include "base/error.h"
#include "kernels/cuda/runtime/runtime.h"
#include "kernels/cuda/vendors/conv.h"
#include "kernels/cuda/vendors/conv_cudnn_graphs.h"

namespace plumb::cuda {
namespace {

namespace fe = cudnn_frontend;
using cuda::check;

// 9.0.0 exports every function called here, and has every descriptor and attribute of a convolution's graph,
// with the same values. The frontend guards later features by cudnnGetVersion() (a plan's workspace before it
// is built: 9.2; planning for an absent GPU, as in tests: 9.8).
constexpr std::size_t kOldestCudnn = 90000;
constexpr std::size_t kMostTensors = 16;  // per graph

std::string version_text(std::size_t version) {  // 91900: 9.19.0; 8907: 8.9.7 (cudnn_version.h)
  const std::size_t major = version < 10000 ? 1000 : 10000;
  return fmt::format("{}.{}.{}", version / major, version % major / 100, version % 100);
}

void check(cudnnStatus_t status, const std::string& doing) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const bool absent = status == CUDNN_STATUS_NOT_INITIALIZED;
  const ExitCode cause = absent ? ExitCode::unavailable : cause_of_failure();
  throw Error(cause, "{} failed while {}: {}{}", conv_library(), doing, cudnnGetErrorString(status),
              absent ? "; check that its libraries have one version and fit the driver" : remedy_for(cause));
}

// A frontend's message may have many lines; the first states the error.
std::string first_line(const std::string& message) {
  return message.substr(0, message.find('\n'));
}

void check(fe::error_t status, const std::string& doing, const std::string& remedy = "") {
  if (status.is_good()) return;
  const ExitCode cause = cause_of_failure();
  throw Error(cause, "{} failed while {}: {}{}", conv_library(), doing, first_line(status.get_message()),
              cause == ExitCode::out_of_memory ? remedy_for(cause) : remedy);
}

using Handle = Owner<cudnnHandle_t, cudnnDestroy>;

// Excludes engines that break the product's numerical guarantees: exact products of stored values, f32
// accumulation, f32 that stays f32 unless TF32 is requested and, optionally, bitwise repeatability.
std::vector<fe::NumericalNote_t> unwanted_notes(const ConvProblem& problem,
                                                const ConvEngineOptions& options) {
  std::vector<fe::NumericalNote_t> notes{fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION,
                                         fe::NumericalNote_t::DOWN_CONVERT_INPUTS};
  if (options.deterministic) notes.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
  if (problem.dtype != DType::f32)  // in half precision its transforms are rounded
    notes.push_back(fe::NumericalNote_t::WINOGRAD);
  if (problem.dtype == DType::f32 && !problem.allow_tf32) notes.push_back(fe::NumericalNote_t::TENSOR_CORE);
  return notes;
}

// One engine of a graph. A problem's candidates share the graph.
ConvPlan plan_at(cudnnHandle_t handle, const std::shared_ptr<const ConvGraph>& graph, std::int64_t index,
                 const std::string& engine, const std::string& text) {
  std::int64_t workspace_bytes = 0;
  check(graph->graph->get_workspace_size_plan_at_index(index, workspace_bytes), "planning " + text);
  return {engine, static_cast<std::size_t>(workspace_bytes),
          [=](cudaStream_t stream, std::span<std::byte* const> operands, std::byte* workspace) {
            std::array<void*, kMostTensors> addresses{};
            const std::vector<TensorPlace>& places = graph->places;
            for (std::size_t i = 0; i < places.size(); ++i)
              addresses.at(i) = operands[places[i].operand] + places[i].offset;
            check(cudnnSetStream(handle, stream), "running " + text);
            check(graph->graph->execute_plan_at_index(handle, addresses.data(),
                                                      static_cast<int>(places.size()), workspace, index),
                  "running " + engine + " for " + text,
                  "; delete the tuning cache and start again, or pass --fusion off");
          }};
}

// Queries the heuristics once; candidates are built by index.
ConvCandidates candidates_of(cudnnHandle_t handle, ConvGraph built, const std::string& text) {
  const auto graph = std::make_shared<ConvGraph>(std::move(built));
  ConvCandidates listed;
  std::set<std::string> seen;  // both heuristics lists may contain an engine
  for (std::int64_t i = 0; i < graph->graph->get_execution_plan_count(); ++i) {
    std::string name;
    if (graph->graph->get_plan_name_at_index(i, name).is_bad() || !seen.insert(name).second) continue;
    listed.engines.push_back({name, [=](std::string& failure) -> std::optional<ConvPlan> {
                                try {
                                  fe::error_t status = graph->graph->build_plan_at_index(i);
                                  if (status.is_good()) return plan_at(handle, graph, i, name, text);
                                  failure = first_line(status.get_message());
                                } catch (const fe::cudnnException& exception) {
                                  failure = first_line(exception.what());
                                }
                                return {};
                              }});
  }
  return listed;
}

std::shared_ptr<const fe::DeviceProperties> read_properties(const std::string& json) {
  std::vector<std::uint8_t> bytes(json.begin(), json.end());
  bytes.push_back(0);
  auto properties = std::make_shared<fe::DeviceProperties>();
  check(properties->deserialize(bytes), "reading a GPU's properties");
  return properties;
}

struct Cudnn {
  explicit Cudnn(const ConvEngineOptions& chosen) : options(chosen) {
    if (!options.device_properties_json.empty()) {
      properties = read_properties(options.device_properties_json);
      return;
    }
    cudnnHandle_t made = nullptr;
    check(cudnnCreate(&made), "starting");
    handle.reset(made);
  }

  // cuDNN loads and unloads the run-time compiler's library for each convolution that it plans, which takes
  // nine tenths of the time. This handle keeps it loaded. Null if it isn't found: cuDNN then searches itself.
  const Owner<void*, dlclose> run_time_compiler{
      dlopen(("libnvrtc.so." + std::to_string(CUDART_VERSION / 1000)).c_str(), RTLD_LAZY | RTLD_LOCAL)};
  const ConvEngineOptions options;
  Handle handle;                                           // of the current device, or
  std::shared_ptr<const fe::DeviceProperties> properties;  // of a GPU that may be absent
};

ConvCandidates list_engines(const Cudnn& cudnn, const ConvProblem& problem, std::size_t workspace_limit) {
  const std::string text = text_of(problem);
  try {
    ConvGraph built = ConvGraphBuilder(problem).build();
    fe::graph::Graph& graph = *built.graph;
    if (cudnn.properties) graph.set_device_properties(cudnn.properties);
    graph.set_cuda_graph_retention(fe::CudaGraphRetention_t::NONE);
    check(graph.validate(), "describing " + text);
    check(cudnn.properties ? graph.build_operation_graph() : graph.build_operation_graph(cudnn.handle.get()),
          "describing " + text);
    fe::error_t listed = graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
    if (listed.is_bad()) return {.engines = {}, .failure = first_line(listed.get_message())};
    graph.deselect_numeric_notes(unwanted_notes(problem, cudnn.options));
    graph.deselect_workspace_greater_than(static_cast<std::int64_t>(workspace_limit));
    return candidates_of(cudnn.handle.get(), std::move(built), text);
  } catch (const fe::cudnnException& exception) {
    throw Error(ExitCode::internal, "{} failed while planning {}: {}", conv_library(), text,
                exception.what());
  }
}

}  // namespace

// cudnnGetVersion() ends the process if the library that it asks isn't there, as on hosts without a GPU.
std::string conv_library() {
  static const Owner<void*, dlclose> graph_library{
      dlopen(fmt::format("libcudnn_graph.so.{}", CUDNN_MAJOR).c_str(), RTLD_LAZY | RTLD_LOCAL)};
  return graph_library ? "cuDNN " + version_text(cudnnGetVersion()) : "cuDNN";
}

ConvEngine make_conv_engine(const ConvEngineOptions& options) {
  if (cudnnGetVersion() < kOldestCudnn)
    throw Error(ExitCode::unavailable,
                "--device cuda: cuDNN {} is too old, {} or newer is needed; put the folder of a newer one "
                "first in LD_LIBRARY_PATH, or use --device cpu",
                version_text(cudnnGetVersion()), version_text(kOldestCudnn));
  return {.library = conv_library(),
          .candidates = [cudnn = std::make_shared<const Cudnn>(options)](const ConvProblem& problem,
                                                                         std::size_t workspace_limit) {
            return list_engines(*cudnn, problem, workspace_limit);
          }};
}

}  // namespace plumb::cuda
