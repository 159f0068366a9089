// Host communicator for buffers in device memory: copies each collective's data to page-locked host memory,
// runs the collective there, and copies back.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "comm/communicator.h"

namespace plumb {

// Device functions for staging. All copies run on the communication lane, in order.
struct DeviceCopies {
  std::function<std::shared_ptr<std::byte>(std::size_t bytes)> allocate_pinned;
  std::function<void(std::byte* host, const std::byte* device, std::size_t bytes)> to_host;    // enqueues
  std::function<void(std::byte* device, const std::byte* host, std::size_t bytes)> to_device;  // enqueues
  std::function<std::size_t()> mark;              // the end of the work enqueued so far
  std::function<bool(std::size_t mark)> reached;  // whether that work has run; doesn't wait
};

// wait(ticket) returns once the copy back is enqueued on the lane. Collectives go to `carrier` in start
// order. Host memory is allocated at the first reduction of a device buffer and kept for it. Destroy after
// the lane is idle; pending collectives are abandoned then.
std::unique_ptr<Communicator> make_staged_communicator(std::unique_ptr<Communicator> carrier,
                                                       DeviceCopies copies);

}  // namespace plumb
