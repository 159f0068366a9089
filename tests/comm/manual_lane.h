// A device lane in host memory that queues work and runs it only on request.
#pragma once

#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "kernels/device.h"

namespace plumb {

struct ManualLane : HostStaging {
  std::deque<std::function<void()>> given;
  std::size_t given_so_far = 0, run_so_far = 0;
  int allocations = 0;
  bool moves_when_asked = false;  // reached() runs one entry, simulating progress over time

  void enqueue(std::function<void()> work) {
    given.push_back(std::move(work));
    ++given_so_far;
  }
  void run(std::size_t entries) {
    for (; entries > 0 && !given.empty(); --entries) {
      given.front()();
      given.pop_front();
      ++run_so_far;
    }
  }
  void run_all() { run(given.size()); }

  std::shared_ptr<std::byte> allocate_pinned(std::size_t bytes) override {
    ++allocations;
    return std::shared_ptr<std::byte>(new std::byte[bytes], std::default_delete<std::byte[]>());
  }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes, Lane) override {
    enqueue([=] { std::memcpy(to, from, bytes); });
  }
  std::size_t mark(Lane) override { return given_so_far; }
  bool reached(std::size_t mark) override {
    if (moves_when_asked) run(1);
    return run_so_far >= mark;
  }
};

}  // namespace plumb
