// Memory that threads share: a thread that needs more than is left waits for the others.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace plumb {

class ByteBudget {
 public:
  explicit ByteBudget(std::size_t bytes) : left_(bytes) {}

  // A thread's part, for as long as it lives. A thread that has one must not wait for a second.
  class Share {
   public:
    // `bytes`: at most the whole budget.
    Share(ByteBudget& budget, std::size_t bytes) : budget_(budget), bytes_(bytes) {
      std::unique_lock lock(budget_.mutex_);
      budget_.freed_.wait(lock, [&] { return budget_.left_ >= bytes_; });
      budget_.left_ -= bytes_;
    }
    ~Share() {
      const std::scoped_lock lock(budget_.mutex_);
      budget_.left_ += bytes_;
      budget_.freed_.notify_all();
    }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

   private:
    ByteBudget& budget_;
    std::size_t bytes_;
  };

 private:
  std::mutex mutex_;  // guards left_
  std::condition_variable freed_;
  std::size_t left_;
};

}  // namespace plumb
