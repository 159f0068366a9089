// Says something once if work takes longer than it should, while the working thread is stuck in it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace plumb {

// Calls `tell` once, on a thread of its own, unless it is destroyed within `patience`. An empty `tell`: no
// thread. The destructor waits for a call that has begun.
class LateAlarm {
 public:
  LateAlarm(std::chrono::milliseconds patience, std::function<void()> tell) {
    if (!tell) return;
    thread_ = std::jthread([this, patience, tell = std::move(tell)](const std::stop_token& stop) {
      std::unique_lock lock(mutex_);
      ended_.wait_for(lock, stop, patience, [] { return false; });
      if (!stop.stop_requested()) tell();
    });
  }
  LateAlarm(const LateAlarm&) = delete;
  LateAlarm& operator=(const LateAlarm&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace plumb
