// Stream capture and graphs of the CUDA runtime stand-in. A graph is a list of operations with their
// predecessors; each launch enqueues all of them on the timeline again.
#include <algorithm>
#include <memory>
#include <utility>

#include "tests/cuda_host/runtime_state.h"

using namespace plumb::gpu::emulated;

namespace {

// True if every node has joined the origin stream, directly or through later nodes.
bool all_joined(const Capture& capture) {
  std::vector<bool> joined(capture.nodes.size(), false);
  for (std::size_t node : capture.origin->captured) joined[node] = true;
  for (std::size_t node = capture.nodes.size(); node-- > 0;)
    if (joined[node])
      for (std::size_t before : capture.nodes[node].after) joined[before] = true;
  return std::find(joined.begin(), joined.end(), false) == joined.end();
}

cudaError_t status_of_end(const Capture& capture) {
  if (capture.invalid) return cudaErrorStreamCaptureInvalidated;
  if (capture.mode != cudaStreamCaptureModeRelaxed && capture.thread != std::this_thread::get_id())
    return cudaErrorStreamCaptureWrongThread;
  return all_joined(capture) ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  Runtime& state = runtime();
  const std::lock_guard lock(state.mutex);
  if (!stream) return fail(cudaErrorStreamCaptureUnsupported);
  if (stream->capture) return fail(cudaErrorIllegalState);
  auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->streams = {stream};
  stream->capture = capture;
  stream->captured.clear();
  state.captures.push_back(std::move(capture));
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  Runtime& state = runtime();
  const std::lock_guard lock(state.mutex);
  *graph = nullptr;
  if (!stream || !stream->capture) return fail(cudaErrorIllegalState);
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture->origin != stream) {
    capture->invalid = true;
    return fail(cudaErrorStreamCaptureUnmatched);
  }
  const cudaError_t status = status_of_end(*capture);
  for (cudaStream_t other : capture->streams) {
    if (!state.streams.contains(other)) continue;
    other->capture = nullptr;
    other->captured.clear();
  }
  std::erase(state.captures, capture);
  if (status != cudaSuccess) return fail(status);
  auto made = std::make_unique<CUgraph_st>();
  made->nodes = capture->nodes;
  state.captured_nodes = made->nodes.size();
  ++state.graphs;
  *graph = made.release();
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(runtime().mutex);
  *status = !stream || !stream->capture ? cudaStreamCaptureStatusNone
            : stream->capture->invalid  ? cudaStreamCaptureStatusInvalidated
                                        : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  Runtime& state = runtime();
  const std::lock_guard lock(state.mutex);
  auto made = std::make_unique<CUgraphExec_st>();
  made->nodes = graph->nodes;
  made->flags = flags;
  ++state.graphs;
  *executable = made.release();
  return cudaSuccess;
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t executable, unsigned long long* flags) {
  *flags = executable->flags;
  return cudaSuccess;
}

// The graph starts after all work enqueued on the stream; work enqueued later waits for all of the graph.
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  Runtime& state = runtime();
  const std::lock_guard lock(state.mutex);
  if (!stream) return refuse_legacy_stream() ? cudaErrorStreamCaptureImplicit : fail(cudaErrorNotSupported);
  if (const cudaError_t status = refuse_if_capturing(stream)) return status;
  if (const cudaError_t status = enqueue(stream, nullptr)) return status;
  std::vector<OperationPtr> operations;
  for (const Node& node : executable->nodes) {
    std::vector<OperationPtr> after{stream->last};
    for (std::size_t before : node.after) after.push_back(operations[before]);
    operations.push_back(state.timeline.add(node.work, node.queue, after));
  }
  operations.push_back(stream->last);
  stream->last = state.timeline.add(nullptr, stream->queue, operations);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const std::lock_guard lock(runtime().mutex);
  const std::unique_ptr<CUgraph_st> owned(graph);
  runtime().graphs -= owned ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const std::lock_guard lock(runtime().mutex);
  const std::unique_ptr<CUgraphExec_st> owned(executable);
  runtime().graphs -= owned ? 1 : 0;
  return cudaSuccess;
}

}  // extern "C"
