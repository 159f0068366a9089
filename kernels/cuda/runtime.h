// Owners of CUDA runtime resources.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "kernels/cuda/check.h"

namespace plumb::cuda {

// Cause of a library's failure: out_of_memory if the device has almost no memory left, since libraries load
// kernels and tables on first use and seldom report a lack of memory; internal otherwise.
ExitCode cause_of_failure();
ExitCode cause_of_failure(std::size_t free_bytes);
// The same as the end of a sentence: "", or that memory ran out and what helps.
std::string remedy_for(ExitCode cause);

struct StreamDeleter {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, StreamDeleter>;
enum class Priority { normal, high };
Stream make_stream(Priority priority = Priority::normal);  // doesn't wait for the default stream

struct EventDeleter {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, EventDeleter>;
Event make_event();         // for ordering only
Event make_timing_event();  // for ordering and timing

struct DeviceMemoryDeleter {
  void operator()(std::byte* memory) const { cudaFree(memory); }
};
using DeviceMemory = std::unique_ptr<std::byte, DeviceMemoryDeleter>;
DeviceMemory allocate_device(std::size_t bytes);

// Page-locked host memory that the device can read and write at the same address.
struct PinnedMemoryDeleter {
  void operator()(std::byte* memory) const { cudaFreeHost(memory); }
};
using PinnedMemory = std::unique_ptr<std::byte, PinnedMemoryDeleter>;
PinnedMemory allocate_pinned(std::size_t bytes);

struct GraphDeleter {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
using CapturedGraph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, GraphDeleter>;
struct GraphExecDeleter {
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};
using ExecutableGraph = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, GraphExecDeleter>;

}  // namespace plumb::cuda
