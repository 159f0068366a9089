#include "tests/cuda_host/runtime_state.h"

#include <malloc.h>

#include <limits>
#include <string>
#include <utility>

#include "tests/cuda_host/device_memory.h"
#include "tests/cuda_host/emulated/block.h"

namespace plumb::gpu::emulated {

// Every operation makes its vectors anew: given back to the system, their pages cost as much as the work.
Runtime::Runtime() : timeline(order_seed()) {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

Runtime& runtime() {
  static Runtime state;  // the CUDA API leaves no other place for it
  return state;
}

std::string leaks() {
  const Runtime& state = runtime();
  std::string text;
  const auto add = [&](std::size_t count, const std::string& what) {
    if (count > 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  };
  add(state.streams.size(), "streams");
  add(state.events.size(), "events");
  add(state.graphs, "graphs");
  add(device_memory().allocations(), "allocations");
  return text;
}

cudaError_t status_of(const Runtime& state) {
  return state.timeline.failure().empty() ? cudaSuccess : fail(cudaErrorLaunchFailure);
}

cudaError_t refuse_if_capturing(cudaStream_t stream) {
  if (!stream || !stream->capture) return cudaSuccess;
  stream->capture->invalid = true;
  return fail(cudaErrorStreamCaptureUnsupported);
}

cudaError_t refuse_unsafe_call() {
  for (const std::shared_ptr<Capture>& capture : runtime().captures) {
    const bool concerns_this_thread =
        capture->mode == cudaStreamCaptureModeGlobal ||
        (capture->mode == cudaStreamCaptureModeThreadLocal && capture->thread == std::this_thread::get_id());
    if (!concerns_this_thread) continue;
    capture->invalid = true;
    return fail(cudaErrorStreamCaptureUnsupported);
  }
  return cudaSuccess;
}

// Stricter than CUDA, which permits it if all capturing streams are non-blocking: a step must not use that
// stream at all.
cudaError_t refuse_legacy_stream() {
  if (runtime().captures.empty()) return cudaSuccess;
  for (const std::shared_ptr<Capture>& capture : runtime().captures) capture->invalid = true;
  return fail(cudaErrorStreamCaptureImplicit);
}

cudaError_t enqueue(cudaStream_t stream, Work work) {
  Runtime& state = runtime();
  const std::lock_guard lock(state.mutex);
  if (const cudaError_t status = status_of(state)) return status;
  if (!stream) {
    if (const cudaError_t status = refuse_legacy_stream()) return status;
    for (cudaStream_t other : state.streams)
      if (other->blocking) state.timeline.run_until(other->last);
    const DeviceMemoryAccess access;
    while (!work()) std::this_thread::yield();
    return cudaSuccess;
  }
  if (stream->capture) {
    Capture& capture = *stream->capture;
    if (capture.invalid) return fail(cudaErrorStreamCaptureInvalidated);
    capture.nodes.push_back(
        {.work = std::move(work), .queue = stream->queue, .after = std::move(stream->captured)});
    stream->captured = {capture.nodes.size() - 1};
    return cudaSuccess;
  }
  std::vector<OperationPtr> after = std::exchange(stream->waits, {});
  after.push_back(stream->last);
  stream->last = state.timeline.add(std::move(work), stream->queue, after);
  return cudaSuccess;
}

}  // namespace plumb::gpu::emulated
