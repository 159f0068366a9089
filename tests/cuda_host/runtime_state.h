// What the stand-in for the CUDA runtime keeps between calls: the objects behind CUDA's handles, and the
// rules of stream capture (CUDA C++ Programming Guide, "Stream Capture").
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "tests/cuda_host/timeline.h"

namespace plumb::gpu::emulated {

// One recorded operation, and the numbers of those that come before it.
struct Node {
  Work work;
  std::size_t queue = 0;
  std::vector<std::size_t> after;
};

struct Capture {
  cudaStream_t origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  std::vector<Node> nodes;
  std::vector<cudaStream_t> streams;  // that take part, the origin first
  bool invalid = false;
};

// When an event was last recorded.
struct Recording {
  OperationPtr operation;
  std::uint64_t nanoseconds = 0;
};

}  // namespace plumb::gpu::emulated

struct CUstream_st {
  std::size_t queue = 0;
  bool blocking = false;  // waits for the legacy default stream, and that for it
  plumb::gpu::emulated::OperationPtr last;
  std::vector<plumb::gpu::emulated::OperationPtr> waits;  // of the next operation, beside `last`
  std::shared_ptr<plumb::gpu::emulated::Capture> capture;
  std::vector<std::size_t> captured;  // nodes that the next captured one comes after
};

struct CUevent_st {
  bool timing = false;
  std::shared_ptr<plumb::gpu::emulated::Recording> recording;
  std::shared_ptr<plumb::gpu::emulated::Capture> capture;  // if it was last recorded in one
  std::vector<std::size_t> captured;
};

struct CUgraph_st {
  std::vector<plumb::gpu::emulated::Node> nodes;
};
struct CUgraphExec_st {
  std::vector<plumb::gpu::emulated::Node> nodes;
  unsigned long long flags = 0;  // of cudaGraphInstantiate
};

namespace plumb::gpu::emulated {

struct Runtime {
  Runtime();
  std::recursive_mutex mutex;
  Timeline timeline;
  std::set<cudaStream_t> streams;
  std::set<cudaEvent_t> events;
  std::size_t graphs = 0;                          // graphs and executable ones
  std::size_t queues = 0;                          // streams made so far
  std::vector<std::shared_ptr<Capture>> captures;  // under way
};
Runtime& runtime();

// The objects that a program has not given back: "1 stream, 2 allocations", or "". For tests' ends.
std::string leaks();

// What an earlier operation's failure makes of a call; cudaSuccess if there was none.
cudaError_t status_of(const Runtime& runtime);
cudaError_t fail(cudaError_t error);  // remembers it for cudaGetLastError

// Gives the stream an operation, captures it, or, on the null stream, does it now and lets exceptions out.
cudaError_t enqueue(cudaStream_t stream, Work work);
inline Work once(std::function<void()> work) {
  return [work = std::move(work)] {
    work();
    return true;
  };
}

// A call that capturing forbids: it spoils the captures that it meets. cudaSuccess if there are none.
cudaError_t refuse_if_capturing(cudaStream_t stream);  // that stream
cudaError_t refuse_unsafe_call();                      // any, by the rules of their modes
cudaError_t refuse_legacy_stream();

}  // namespace plumb::gpu::emulated
