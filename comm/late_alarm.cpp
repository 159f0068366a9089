#include "comm/late_alarm.h"

#include <utility>

namespace plumb {

LateAlarm::LateAlarm(std::chrono::milliseconds patience, std::function<void()> tell) {
  if (!tell) return;
  thread_ = std::jthread([this, patience, tell = std::move(tell)](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    ended_.wait_for(lock, stop, patience, [] { return false; });
    if (!stop.stop_requested()) tell();
  });
}

}  // namespace plumb
