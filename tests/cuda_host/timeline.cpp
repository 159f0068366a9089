#include "tests/cuda_host/timeline.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "tests/cuda_host/device_memory.h"

namespace plumb::gpu::emulated {

OperationPtr Timeline::add(Work work, std::size_t queue, std::span<const OperationPtr> after) {
  auto operation = std::make_shared<Operation>();
  operation->work = std::move(work);
  operation->queue = queue;
  for (const OperationPtr& before : after) {
    if (!before || before->done) continue;
    before->followers.push_back(operation);
    ++operation->waits_for;
  }
  if (operation->waits_for == 0) ready_.push_back(operation);
  return operation;
}

void Timeline::finish(Operation& operation) {
  operation.done = true;
  operation.work = nullptr;
  for (const OperationPtr& follower : std::exchange(operation.followers, {}))
    if (--follower->waits_for == 0) ready_.push_back(follower);
}

void Timeline::run_next() {
  // Lets one queue run far ahead, then another: finds more errors than round-robin.
  const auto of_favorite = [&](const OperationPtr& operation) { return operation->queue == favorite_; };
  auto next = random_() % 16 == 0 ? ready_.end() : std::find_if(ready_.begin(), ready_.end(), of_favorite);
  if (next == ready_.end()) next = ready_.begin() + static_cast<std::ptrdiff_t>(random_() % ready_.size());
  const OperationPtr operation = *next;
  favorite_ = operation->queue;
  ready_.erase(next);
  bool ended = true;
  if (operation->work && failure_.empty()) {
    try {
      ended = operation->work();
    } catch (const std::exception& error) {
      failure_ = error.what();
    }
  }
  if (ended) {
    finish(*operation);
  } else {
    ready_.push_back(operation);
    if (ready_.size() == 1) std::this_thread::yield();
  }
}

void Timeline::run_until(const OperationPtr& operation) {
  if (!operation || operation->done) return;
  const DeviceMemoryAccess access;
  while (!operation->done) run_next();
}

void Timeline::run_all() {
  if (ready_.empty()) return;
  const DeviceMemoryAccess access;
  while (!ready_.empty()) run_next();
}

void Timeline::run_some(const OperationPtr& operation) {
  if (!operation || operation->done || random_() % 4 == 0) return;
  const DeviceMemoryAccess access;
  for (std::uint32_t left = random_() % 512; left > 0 && !operation->done; --left) run_next();
}

}  // namespace plumb::gpu::emulated
