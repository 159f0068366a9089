#include "tests/cuda_host/emulated/fiber.h"

#include <sys/mman.h>

#include <new>

// Only in builds with AddressSanitizer. ThreadSanitizer isn't told: to it all fibers of a host thread are one
// thread, which is as true and takes a third of the time.
extern "C" {
__attribute__((weak)) void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom,
                                                          std::size_t bytes);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void* fake_stack, const void** old_bottom,
                                                           std::size_t* old_bytes);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void* address, std::size_t bytes);
}

namespace plumb::gpu::emulated {
namespace {

Fiber* switched_from = nullptr;
Fiber* switched_to = nullptr;

}  // namespace

void Fiber::allocate() {
  void* memory = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, kGuardBytes, PROT_NONE);
  memory_ = static_cast<std::byte*>(memory);
  bottom_ = memory_ + kGuardBytes;
  bytes_ = kStackBytes;
}

Fiber::~Fiber() {
  if (!memory_) return;
  release();
  munmap(memory_, kGuardBytes + kStackBytes);
}

void Fiber::start_at(void (*entry)()) {
  if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(bottom_, bytes_);
  fake_stack_ = nullptr;
  // Stack tops at the same page offset would share a few cache sets.
  prepare(memory_ + kGuardBytes + kStackBytes - slot_ % 64 * 192, entry);
}

void Fiber::switch_to(Fiber& to) {
  switched_from = this;
  switched_to = &to;
  if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(&fake_stack_, to.bottom_, to.bytes_);
  jump(*this, to);
  entered();
}

void Fiber::entered() {
  if (__sanitizer_finish_switch_fiber)
    __sanitizer_finish_switch_fiber(switched_to->fake_stack_, &switched_from->bottom_,
                                    &switched_from->bytes_);
}

}  // namespace plumb::gpu::emulated
