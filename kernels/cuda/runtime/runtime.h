// Owners of CUDA runtime resources.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "kernels/cuda/runtime/check.h"

namespace plumb::cuda {

// Cause of a library's failure: out_of_memory if the device has almost no memory left, since libraries load
// kernels and tables on first use and seldom report a lack of memory; internal otherwise.
ExitCode cause_of_failure();
ExitCode cause_of_failure(std::size_t free_bytes);
// The same as the end of a sentence: "", or that memory ran out and what helps.
std::string remedy_for(ExitCode cause);

// Owner of a library's object or memory, by the function that destroys it.
template <auto kDestroy>
struct Destroy {
  template <typename T>
  void operator()(T* made) const {
    kDestroy(made);
  }
};
template <typename Handle, auto kDestroy>
using Owner = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<kDestroy>>;

using Stream = Owner<cudaStream_t, cudaStreamDestroy>;
enum class Priority { low, normal, high };
Stream make_stream(Priority priority = Priority::normal);  // doesn't wait for the default stream

using Event = Owner<cudaEvent_t, cudaEventDestroy>;
Event make_event(
    unsigned flags = cudaEventDisableTiming);  // for ordering only; cudaEventDefault: also for times

using DeviceMemory = Owner<std::byte*, cudaFree>;
DeviceMemory allocate_device(std::size_t bytes);

// Page-locked host memory that the device can read and write at the same address.
using PinnedMemory = Owner<std::byte*, cudaFreeHost>;
PinnedMemory allocate_pinned(std::size_t bytes);

using CapturedGraph = Owner<cudaGraph_t, cudaGraphDestroy>;
using ExecutableGraph = Owner<cudaGraphExec_t, cudaGraphExecDestroy>;

// Records what `enqueue` puts on the stream, without running it. The stream is usable after a failure.
CapturedGraph capture_graph(cudaStream_t stream, const std::function<void()>& enqueue);
// Nodes keep the priorities of their streams: by default a replay runs entirely at that of the stream it is
// launched into.
ExecutableGraph instantiate(const CapturedGraph& graph);

}  // namespace plumb::cuda
