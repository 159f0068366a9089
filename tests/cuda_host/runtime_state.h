// State of the CUDA runtime stand-in between calls: the objects behind CUDA's handles, and the rules of
// stream capture (CUDA C++ Programming Guide, "Stream Capture").
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

// One recorded operation and the indices of its predecessors.
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
  std::vector<cudaStream_t> streams;  // participants, the origin first
  bool invalid = false;
};

// State at an event's last record.
struct Recording {
  OperationPtr operation;
  std::uint64_t nanoseconds = 0;
};

}  // namespace plumb::gpu::emulated

struct CUstream_st {
  std::size_t queue = 0;
  bool blocking = false;  // synchronizes with the legacy default stream
  plumb::gpu::emulated::OperationPtr last;
  std::vector<plumb::gpu::emulated::OperationPtr> waits;  // for the next operation, besides `last`
  std::shared_ptr<plumb::gpu::emulated::Capture> capture;
  std::vector<std::size_t> captured;  // predecessors of the next captured node
};

struct CUevent_st {
  bool timing = false;
  std::shared_ptr<plumb::gpu::emulated::Recording> recording;
  std::shared_ptr<plumb::gpu::emulated::Capture> capture;  // set if last recorded in a capture
  std::vector<std::size_t> captured;
};

struct CUgraph_st {
  std::vector<plumb::gpu::emulated::Node> nodes;
};
struct CUgraphExec_st {
  std::vector<plumb::gpu::emulated::Node> nodes;
  unsigned long long flags = 0;  // cudaGraphInstantiate's
};

namespace plumb::gpu::emulated {

struct Runtime {
  Runtime();
  std::recursive_mutex mutex;
  Timeline timeline;
  std::set<cudaStream_t> streams;
  std::set<cudaEvent_t> events;
  std::size_t graphs = 0;                          // graphs and executable ones
  std::size_t queues = 0;                          // streams created so far
  std::vector<std::shared_ptr<Capture>> captures;  // in progress
  std::size_t captured_nodes = 0;                  // of the last capture that ended well
};
Runtime& runtime();

// Objects the program hasn't released: "1 stream, 2 allocations", or "". For the end of tests.
std::string leaks();

// A call's status after an earlier operation's failure; cudaSuccess if there was none.
cudaError_t status_of(const Runtime& runtime);
cudaError_t fail(cudaError_t error);  // stored for cudaGetLastError

// Enqueues the operation, captures it, or, on the null stream, runs it now and lets exceptions through.
cudaError_t enqueue(cudaStream_t stream, Work work);
inline Work once(std::function<void()> work) {
  return [work = std::move(work)] {
    work();
    return true;
  };
}

// Rejects a call that is forbidden during capture and invalidates the captures it affects; cudaSuccess if
// there are none.
cudaError_t refuse_if_capturing(cudaStream_t stream);  // captures of that stream
cudaError_t refuse_unsafe_call();                      // any capture, by the rules of its mode
cudaError_t refuse_legacy_stream();

}  // namespace plumb::gpu::emulated
