// Stacks that the thread of the host switches between: one for every CUDA thread that waits for others.
#pragma once

#include <cstddef>

namespace plumb::gpu::emulated {

class Fiber {
 public:
  Fiber() = default;                // the host's own stack
  explicit Fiber(std::size_t slot)  // a stack of its own; slots differ in how they lie in the cache
      : slot_(slot) {
    allocate();
  }
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next switch to it calls `entry`, which never returns. What was on the stack is forgotten.
  void start_at(void (*entry)());
  // Goes on with `to`; returns when something switches back to this one, which is the running one.
  void switch_to(Fiber& to);
  // The first thing that an entry does.
  static void entered();

 private:
  static constexpr std::size_t kGuardBytes = 4096;
  static constexpr std::size_t kStackBytes = std::size_t{256} << 10;  // touched as far as it is used

  void allocate();
  void prepare(std::byte* top, void (*entry)());  // in fiber_x86_64.cpp or fiber_ucontext.cpp
  static void jump(Fiber& from, Fiber& to);       // likewise
  void release();                                 // likewise

  std::size_t slot_ = 0;
  std::byte* memory_ = nullptr;      // guard page, then the stack
  void* context_ = nullptr;          // stack pointer, or what the other file keeps
  void* fake_stack_ = nullptr;       // AddressSanitizer's
  const void* bottom_ = nullptr;     // of the stack, for AddressSanitizer
  std::size_t bytes_ = 0;            // likewise
  void* sanitizer_fiber_ = nullptr;  // ThreadSanitizer's
};

}  // namespace plumb::gpu::emulated
