// The narrow door to whoever computes convolutions: cuDNN on a GPU (conv_cudnn.cpp), plain loops on the
// emulated one (tests/cuda_host). Activations are NHWC, weights and their gradients [out, kh, kw, in].
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/program.h"
#include "models/graph.h"

namespace plumb::cuda {

// One convolution step, by the kinds conv_forward, conv_backward_data, conv_backward_weights and
// conv_norm_backward_data of kernels/program.h.
struct ConvProblem {
  StepKind kind = StepKind::conv_forward;
  std::int64_t n = 0, h = 0, w = 0, c = 0;  // input, channels as the device pads them
  std::int64_t out_h = 0, out_w = 0, out_c = 0;
  int kernel = 1, stride = 1, padding = 0, groups = 1;
  DType dtype = DType::f32;  // of activations, weights and weight gradients; sums are made in f32
  bool allow_tf32 = false;
  ConvFusion fusion;
  // Of the factors that normalising reads. cuDNN 9.19 has no engine unless it is f16 and statistics are
  // gathered or weights computed; conv_norm_backward_data takes the norm's f32 scale, bias, mean and inverse
  // deviation.
  DType factors_dtype = DType::f32;
};
std::string text_of(const ConvProblem& problem);  // for messages and as a key: kind, shape, dtype, fusion
// What a conv_* step of a Program asks for; channels as its buffers hold them.
ConvProblem conv_problem(const Graph& graph, const Program& program, const Step& step);

class ConvPlan {
 public:
  virtual ~ConvPlan() = default;
  virtual std::size_t workspace_bytes() const = 0;
  virtual std::string engine() const = 0;  // for people
  // Enqueues. `operands`: device addresses of the step's buffers in the order of Step::uses. A captured graph
  // may hold kernels that go with the plan: the plan must outlive it.
  virtual void run(cudaStream_t stream, std::span<std::byte* const> operands, std::byte* workspace) const = 0;
};

class ConvEngine {
 public:
  virtual ~ConvEngine() = default;
  // Throws Error(internal) that names the problem if nothing computes it within the workspace.
  virtual std::unique_ptr<ConvPlan> plan(const ConvProblem& problem, std::size_t workspace_limit) = 0;
};

struct ConvEngineOptions {
  // Time the engines that heuristics name first, and remember the fastest on disk (plan_cache.h).
  bool autotune = false;
  // A GPU that need not be there, as CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION describes it: plans for it
  // tell engine and workspace, but can't run, and autotuning only looks up what is remembered. Empty: the
  // current device.
  std::string device_properties_json;
};
// Throws Error(unavailable) if the library is older than what this was built against.
std::unique_ptr<ConvEngine> make_conv_engine(const ConvEngineOptions& options);

}  // namespace plumb::cuda
