// A host communicator for buffers in device memory: each collective is copied to page-locked host memory,
// carried there, and copied back.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "comm/communicator.h"

namespace plumb {

// Device functions that staging needs. All copies run on the communication lane, in order.
struct DeviceCopies {
  std::function<std::shared_ptr<std::byte>(std::size_t bytes)> allocate_pinned;
  std::function<void(std::byte* host, const std::byte* device, std::size_t bytes)> to_host;    // enqueues
  std::function<void(std::byte* device, const std::byte* host, std::size_t bytes)> to_device;  // enqueues
  std::function<std::size_t()> mark;              // the end of the work enqueued so far
  std::function<bool(std::size_t mark)> reached;  // whether it has come so far; doesn't wait
};

// wait(ticket) returns once the copy back is enqueued: work enqueued on the lane afterwards runs after it.
// Collectives are handed to `carrier` in the order in which they were started, on every rank the same. Host
// memory is allocated when a place in device memory is first reduced and kept for that place. Must go once
// the lane has come to its end; collectives that are under way then are given up.
std::unique_ptr<Communicator> make_staged_communicator(std::unique_ptr<Communicator> carrier,
                                                       DeviceCopies copies);

}  // namespace plumb
