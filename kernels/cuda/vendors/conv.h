// Interface to convolution engines: cuDNN on a GPU (conv_cudnn.cpp), plain loops on the emulated one
// (tests/cuda_host).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/program/program.h"
#include "models/graph.h"

namespace plumb::cuda {

struct GemmEngine;

// The engine of what our own kernels compute. Times are cached by this name.
inline constexpr const char* kOwnKernel = "plumbline";
// Raise it with every change to our kernels that changes their times, or adds one: the cache of engines then
// starts from nothing.
inline constexpr int kOwnKernelsVersion = 3;

enum class ConvPass { forward, backward_data, backward_weights, norm_backward_data };

// The work of one instruction of kernels/program/instructions/conv.h.
struct ConvProblem {
  ConvPass pass = ConvPass::forward;
  std::int64_t n = 0, h = 0, w = 0, c = 0;  // input; channels padded as on the device
  std::int64_t out_h = 0, out_w = 0, out_c = 0;
  int kernel = 1, stride = 1, padding = 0, groups = 1;
  DType dtype = DType::f32;  // of activations, weights and weight gradients; accumulation is f32
  bool allow_tf32 = false;
  struct {                            // operations that a fused engine adds to the convolution
    bool normalizes_input = false;    // reads relu(scale * in + shift) instead of in
    bool gathers_statistics = false;  // sums [2, c] of its output
  } fusion = {};
  // cuDNN 9.19 normalizes only with f16 scale and shift, and only when it gathers statistics or computes
  // weight gradients; norm_backward_data takes the batch norm's f32 scale, bias, mean and inv_std.
  DType scale_shift_dtype = DType::f32;
};
std::string text_of(const ConvProblem& problem);  // for messages and as a key: pass, shape, dtype, fusion
bool is_fused(const ConvProblem& problem);
bool is_stem(
    const ConvProblem& problem);  // whether our own kernels compute it: forward or the weights' gradient
// The instruction's convolution with its buffers' padded channels; nothing for depthwise convolutions and for
// other instructions.
std::optional<ConvProblem> conv_problem(const Graph& graph, const Program& program,
                                        const Instruction& instruction);

struct ConvPlan {
  std::string engine;  // the library's name for it, the same in every process
  std::size_t workspace_bytes = 0;
  // Enqueues. `operands`: device addresses in the order of the instruction's operands(), absent ones left
  // out. A captured graph may hold kernels that go with the plan, so the plan must outlive it.
  std::function<void(cudaStream_t stream, std::span<std::byte* const> operands, std::byte* workspace)> run;
};

// An engine that may compute a problem.
struct ConvCandidate {
  std::string engine;
  // Empty if it doesn't build within the workspace limit; `failure` becomes what the library says. Call it
  // once.
  std::function<std::optional<ConvPlan>(std::string& failure)> build;
};
struct ConvCandidates {
  std::vector<ConvCandidate> engines;  // best first by the library's heuristics
  // What the library said where it listed none or last failed to build one; may be empty.
  std::string failure = {};

  std::optional<ConvPlan> build(std::size_t engine) { return engines.at(engine).build(failure); }
};

struct ConvEngine {
  std::string library;  // with its version: "cuDNN 9.19.0"
  // Empty if the library has no engine for the problem. Throws Error(internal) naming an invalid problem.
  std::function<ConvCandidates(const ConvProblem& problem, std::size_t workspace_limit)> candidates;

  // The engine named `wanted` if it builds, else the first that does. Instructions with the same problem
  // share a plan. Throws Error(internal) "… has no engine for …" naming the problem.
  std::shared_ptr<const ConvPlan> plan(const ConvProblem& problem, std::size_t workspace_limit,
                                       const std::string& wanted = "") const;
  // By problem, workspace limit and wanted engine.
  mutable std::map<std::tuple<std::string, std::size_t, std::string>, std::weak_ptr<const ConvPlan>> shared =
      {};
};

// The library that makes engines, with its version: "cuDNN 9.19.0".
std::string conv_library();

struct ConvEngineOptions {
  bool deterministic = false;  // only engines with a fixed order of summation
  // A GPU to plan for without having it, as CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION describes it. Such
  // plans report engine and workspace but can't run. Empty: the current device.
  std::string device_properties_json;
};
// Throws Error(unavailable) if the loaded cuDNN lacks a function called here. It may be older than the
// version of the build, but not older than 9.0.
ConvEngine make_conv_engine(const ConvEngineOptions& options);

// Adds candidates to `convolutions`. Our own kernels for a ResNet's first convolution (own/conv.h) come
// first; only GPUs of compute capability 8.0 and more have that problem, because others hold images with 8
// channels. The algorithms of `products` come after the first two engines, for plain 1x1 convolutions of
// stride 1 without padding. `multiprocessors`: of the GPU.
ConvEngine with_other_candidates(const ConvEngine& convolutions, const GemmEngine& products,
                                 int multiprocessors);

}  // namespace plumb::cuda
