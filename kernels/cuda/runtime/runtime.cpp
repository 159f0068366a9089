#include "kernels/cuda/runtime/runtime.h"

namespace plumb::cuda {
namespace {

ExitCode code_of(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation:
      return ExitCode::out_of_memory;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return ExitCode::unavailable;
    default:
      return ExitCode::internal;
  }
}

// More than the kernels of any one library instruction take; less than a run has left unless it is near the
// limit.
constexpr std::size_t kNextToNothing = std::size_t{128} << 20;

}  // namespace

void check(cudaError_t status, std::source_location where) {
  if (status == cudaSuccess) return;
  throw Error(code_of(status), "CUDA: {} ({}, seen in {}, {})", cudaGetErrorString(status),
              cudaGetErrorName(status), where.function_name(), place_of(where));
}

ExitCode cause_of_failure() {
  std::size_t free = 0, total = 0;
  return cudaMemGetInfo(&free, &total) == cudaSuccess ? cause_of_failure(free) : ExitCode::internal;
}

ExitCode cause_of_failure(std::size_t free_bytes) {
  return free_bytes < kNextToNothing ? ExitCode::out_of_memory : ExitCode::internal;
}

std::string remedy_for(ExitCode cause) {
  if (cause != ExitCode::out_of_memory) return "";
  return "; the GPU's memory is nearly full: lower --bs, or end other programs on the GPU";
}

Stream make_stream(Priority priority) {
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  const int number = priority == Priority::low    ? least
                     : priority == Priority::high ? greatest
                                                  : (least + greatest) / 2;
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, number));
  return Stream(stream);
}

Event make_event(unsigned flags) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, flags));
  return Event(event);
}

DeviceMemory allocate_device(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes));
  return DeviceMemory(static_cast<std::byte*>(memory));
}

PinnedMemory allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
  return PinnedMemory(static_cast<std::byte*>(memory));
}

CapturedGraph capture_graph(cudaStream_t stream, const std::function<void()>& enqueue) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cudaGraph_t graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    const CapturedGraph partial(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph));
  return CapturedGraph(graph);
}

ExecutableGraph instantiate(const CapturedGraph& graph) {
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph.get(), cudaGraphInstantiateFlagUseNodePriority));
  return ExecutableGraph(executable);
}

}  // namespace plumb::cuda
