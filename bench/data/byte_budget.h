// Memory that threads share: who wants more than is left waits for the others.
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
    Share(ByteBudget& budget, std::size_t bytes);
    ~Share();
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
