// The narrow door to whoever computes convolutions: cuDNN on a GPU (conv_cudnn.cpp), plain loops on the
// emulated one (tests/cuda_host). Activations are NHWC, weights and their gradients [out, kh, kw, in].
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>

#include "kernels/program.h"
#include "models/graph.h"

namespace plumb::cuda {

enum class ConvPass { forward, backward_data, backward_weights, norm_backward_data };

// What one instruction of kernels/instructions/conv.h asks for.
struct ConvProblem {
  ConvPass pass = ConvPass::forward;
  std::int64_t n = 0, h = 0, w = 0, c = 0;  // input, channels as the device pads them
  std::int64_t out_h = 0, out_w = 0, out_c = 0;
  int kernel = 1, stride = 1, padding = 0, groups = 1;
  DType dtype = DType::f32;  // of activations, weights and weight gradients; sums are made in f32
  bool allow_tf32 = false;
  ConvFusion fusion;
  // cuDNN 9.19 has no engine that normalises unless it is f16 and statistics are gathered or weights
  // computed; norm_backward_data takes the batch norm's f32 scale, bias, mean and inv_std.
  DType scale_shift_dtype = DType::f32;
};
std::string text_of(const ConvProblem& problem);  // for messages and as a key: pass, shape, dtype, fusion
bool is_fused(const ConvProblem& problem);
// What the step asks of a ConvEngine, channels as its buffers hold them; nothing if it isn't a convolution,
// or a depthwise one.
std::optional<ConvProblem> conv_problem(const Graph& graph, const Program& program, const Step& step);

class ConvPlan {
 public:
  virtual ~ConvPlan() = default;
  virtual std::size_t workspace_bytes() const = 0;
  virtual std::string engine() const = 0;  // by its library's name, the same in every process
  // Enqueues. `operands`: device addresses of the step's buffers in the order of Step::uses(). A captured
  // graph may hold kernels that go with the plan: the plan must outlive it.
  virtual void run(cudaStream_t stream, std::span<std::byte* const> operands, std::byte* workspace) const = 0;
};

// The engines that may compute one problem, best first by the library's heuristics.
class ConvCandidates {
 public:
  virtual ~ConvCandidates() = default;
  virtual std::size_t size() const = 0;
  virtual std::string engine(std::size_t candidate) const = 0;
  // Null if it doesn't build within the workspace limit. A candidate is built at most once.
  virtual std::unique_ptr<ConvPlan> build(std::size_t candidate) = 0;
};

class ConvEngine {
 public:
  virtual ~ConvEngine() = default;
  virtual std::string library() const = 0;  // with its version: "cuDNN 9.19.0"
  // None at all (an empty list) if the library knows no engine for the problem. Throws Error(internal) that
  // names a problem that makes no sense.
  virtual std::unique_ptr<ConvCandidates> candidates(const ConvProblem& problem,
                                                     std::size_t workspace_limit) = 0;

  // The engine called `wanted` if it builds, else the first that does. Steps with the same problem share a
  // plan. Throws Error(internal) "… has no engine for …" that names the problem.
  std::shared_ptr<const ConvPlan> plan(const ConvProblem& problem, std::size_t workspace_limit,
                                       const std::string& wanted = "");

 private:
  std::map<std::tuple<std::string, std::size_t, std::string>, std::shared_ptr<const ConvPlan>> plans_;
};

struct ConvEngineOptions {
  bool deterministic = false;  // only engines that sum in a fixed order
  // A GPU that need not be there, as CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION describes it: plans for it
  // tell engine and workspace, but can't run. Empty: the current device.
  std::string device_properties_json;
};
// Throws Error(unavailable) if the cuDNN that was loaded lacks what is called: it may be older than the one
// that this was built against, but not older than 9.0.
std::unique_ptr<ConvEngine> make_conv_engine(const ConvEngineOptions& options);

}  // namespace plumb::cuda
