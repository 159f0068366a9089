// Stacks that a host thread switches between: one per waiting CUDA thread.
#pragma once

#include <cstddef>

namespace plumb::gpu::emulated {

class Fiber {
 public:
  Fiber() = default;                // the host's own stack
  explicit Fiber(std::size_t slot)  // its own stack; slots are staggered over cache sets
      : slot_(slot) {
    allocate();
  }
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next switch to it calls `entry`, which never returns. Discards the stack's content.
  void start_at(void (*entry)());
  // Switches from this fiber, which must be running, to `to`; returns when something switches back.
  void switch_to(Fiber& to);
  // An entry must call this first.
  static void entered();

 private:
  static constexpr std::size_t kGuardBytes = 4096;
  static constexpr std::size_t kStackBytes = std::size_t{256} << 10;  // touched only as far as used

  void allocate();
  void prepare(std::byte* top, void (*entry)());  // in fiber_x86_64.cpp or fiber_ucontext.cpp
  static void jump(Fiber& from, Fiber& to);       // likewise
  void release();                                 // likewise

  std::size_t slot_ = 0;
  std::byte* memory_ = nullptr;   // guard page, then the stack
  void* context_ = nullptr;       // stack pointer, or fiber_ucontext.cpp's context
  void* fake_stack_ = nullptr;    // AddressSanitizer's
  const void* bottom_ = nullptr;  // of the stack, for AddressSanitizer
  std::size_t bytes_ = 0;         // likewise
};

}  // namespace plumb::gpu::emulated
