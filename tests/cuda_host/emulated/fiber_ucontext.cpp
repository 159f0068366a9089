// Switches through the C library, on CPUs not covered by fiber_x86_64.cpp: two system calls per switch.
#include <ucontext.h>

#include <memory>

#include "tests/cuda_host/emulated/fiber.h"

namespace plumb::gpu::emulated {
namespace {

ucontext_t* context_of(void*& kept) {
  if (!kept) kept = std::make_unique<ucontext_t>().release();
  return static_cast<ucontext_t*>(kept);
}

}  // namespace

void Fiber::prepare(std::byte* top, void (*entry)()) {
  ucontext_t* context = context_of(context_);
  getcontext(context);
  context->uc_stack.ss_sp = memory_ + kGuardBytes;
  context->uc_stack.ss_size = static_cast<std::size_t>(top - (memory_ + kGuardBytes));
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
}

void Fiber::jump(Fiber& from, Fiber& to) {
  swapcontext(context_of(from.context_), context_of(to.context_));
}

void Fiber::release() {
  const std::unique_ptr<ucontext_t> context(static_cast<ucontext_t*>(context_));
}

}  // namespace plumb::gpu::emulated
