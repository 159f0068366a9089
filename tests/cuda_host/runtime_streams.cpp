// Streams, events and kernels of the CUDA runtime stand-in.
#include <memory>
#include <utility>

#include "tests/cuda_host/emulated/block.h"
#include "tests/cuda_host/runtime_state.h"

using namespace plumb::gpu::emulated;

namespace plumb::gpu::emulated {

cudaError_t enqueue_kernel(cudaStream_t stream, dim3 grid, dim3 block_size, std::size_t shared_bytes,
                           std::function<void()> body) {
  const std::uint64_t threads = std::uint64_t{block_size.x} * block_size.y * block_size.z;
  const bool fits = grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= 0x7FFFFFFF && grid.y <= 65535 &&
                    grid.z <= 65535 && threads > 0 && threads <= 1024 && block_size.z <= 64 &&
                    shared_bytes <= 227 * 1024;  // as much as a kernel may ask for
  if (!fits) return fail(cudaErrorInvalidConfiguration);
  return enqueue(stream,
                 once([=, body = std::move(body)] { block().run(grid, block_size, shared_bytes, body); }));
}

namespace {

std::vector<OperationPtr> before_next(cudaStream_t stream) {
  std::vector<OperationPtr> before = stream->waits;
  before.push_back(stream->last);
  return before;
}

// All work enqueued on the stream so far, as one point to wait for.
OperationPtr end_of(cudaStream_t stream) {
  if (stream->waits.empty()) return stream->last;
  const std::vector<OperationPtr> before = before_next(stream);
  stream->waits.clear();
  stream->last = runtime().timeline.add(nullptr, stream->queue, before);
  return stream->last;
}

bool takes_part(const Capture& capture, cudaStream_t stream) {
  for (cudaStream_t other : capture.streams)
    if (other == stream) return true;
  return false;
}

cudaError_t wait_in_capture(cudaStream_t stream, cudaEvent_t event) {
  Capture& capture = *(stream->capture ? stream->capture : event->capture);
  if (capture.invalid) return fail(cudaErrorStreamCaptureInvalidated);
  if (stream->capture != event->capture) {
    if (!stream->capture && takes_part(capture, stream)) return fail(cudaErrorStreamCaptureMerge);
    if (stream->capture) {  // an event from outside, or from another capture
      capture.invalid = true;
      return fail(event->capture ? cudaErrorStreamCaptureMerge : cudaErrorStreamCaptureIsolation);
    }
    stream->capture = event->capture;
    stream->captured.clear();
    capture.streams.push_back(stream);
  }
  stream->captured.insert(stream->captured.end(), event->captured.begin(), event->captured.end());
  return cudaSuccess;
}

}  // namespace
}  // namespace plumb::gpu::emulated

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  Runtime& state = runtime();
  const std::lock_guard lock(state.mutex);
  auto made = std::make_unique<CUstream_st>();
  made->queue = ++state.queues;
  made->blocking = (flags & cudaStreamNonBlocking) == 0;
  state.streams.insert(made.get());
  *stream = made.release();
  return cudaSuccess;
}

// Enqueued work still runs, as on a GPU.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Runtime& state = runtime();
  const std::lock_guard lock(state.mutex);
  if (state.streams.erase(stream) == 0) return fail(cudaErrorInvalidResourceHandle);
  if (stream->capture) stream->capture->invalid = true;
  const std::unique_ptr<CUstream_st> owned(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Runtime& state = runtime();
  const std::lock_guard lock(state.mutex);
  if (!stream) return refuse_legacy_stream();
  if (const cudaError_t status = refuse_if_capturing(stream)) return status;
  state.timeline.run_until(end_of(stream));
  return status_of(state);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  Runtime& state = runtime();
  const std::lock_guard lock(state.mutex);
  if (!stream) return refuse_legacy_stream();
  if (const cudaError_t status = refuse_if_capturing(stream)) return status;
  const OperationPtr end = end_of(stream);
  state.timeline.run_some(end);
  if (const cudaError_t status = status_of(state)) return status;
  return !end || end->done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  Runtime& state = runtime();
  const std::lock_guard lock(state.mutex);
  if (!stream) return refuse_legacy_stream();
  if (stream->capture || event->capture) return wait_in_capture(stream, event);
  if (event->recording) stream->waits.push_back(event->recording->operation);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  Runtime& state = runtime();
  const std::lock_guard lock(state.mutex);
  if (const cudaError_t status = refuse_unsafe_call()) return status;
  state.timeline.run_all();
  return status_of(state);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  Runtime& state = runtime();
  const std::lock_guard lock(state.mutex);
  auto made = std::make_unique<CUevent_st>();
  made->timing = (flags & cudaEventDisableTiming) == 0;
  state.events.insert(made.get());
  *event = made.release();
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  Runtime& state = runtime();
  const std::lock_guard lock(state.mutex);
  if (state.events.erase(event) == 0) return fail(cudaErrorInvalidResourceHandle);
  const std::unique_ptr<CUevent_st> owned(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  Runtime& state = runtime();
  const std::lock_guard lock(state.mutex);
  if (!stream) {
    if (const cudaError_t status = refuse_legacy_stream()) return status;
  }
  if (stream && stream->capture) {
    if (stream->capture->invalid) return fail(cudaErrorStreamCaptureInvalidated);
    event->recording = nullptr;
    event->capture = stream->capture;
    event->captured = stream->captured;
    return cudaSuccess;
  }
  event->capture = nullptr;
  event->captured.clear();
  auto recording = std::make_shared<Recording>();
  const auto stamp = [weak = std::weak_ptr(recording)] {  // a recording holds its operation
    if (const auto kept = weak.lock()) kept->nanoseconds = clock_nanoseconds();
  };
  if (const cudaError_t status = enqueue(stream, once(stamp))) return status;
  if (stream) recording->operation = stream->last;
  event->recording = recording;
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Runtime& state = runtime();
  const std::lock_guard lock(state.mutex);
  if (event->capture) {
    event->capture->invalid = true;
    return fail(cudaErrorCapturedEvent);
  }
  if (event->recording) state.timeline.run_until(event->recording->operation);
  return status_of(state);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  Runtime& state = runtime();
  const std::lock_guard lock(state.mutex);
  if (event->capture) {
    event->capture->invalid = true;
    return fail(cudaErrorCapturedEvent);
  }
  if (!event->recording || !event->recording->operation) return status_of(state);
  state.timeline.run_some(event->recording->operation);
  if (const cudaError_t status = status_of(state)) return status;
  return event->recording->operation->done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  Runtime& state = runtime();
  const std::lock_guard lock(state.mutex);
  for (cudaEvent_t event : {begin, end}) {
    if (event->capture) return fail(cudaErrorCapturedEvent);
    if (!event->timing || !event->recording) return fail(cudaErrorInvalidResourceHandle);
    if (event->recording->operation && !event->recording->operation->done) return cudaErrorNotReady;
  }
  const auto from = static_cast<double>(begin->recording->nanoseconds);
  *milliseconds = static_cast<float>((static_cast<double>(end->recording->nanoseconds) - from) * 1e-6);
  return status_of(state);
}

}  // extern "C"
