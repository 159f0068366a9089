// Switches at the cost of a function call: callee-saved registers and the stack pointer (System V ABI).
#include <cstdint>

#include "tests/cuda_host/emulated/fiber.h"

asm(R"(
.text
.type plumb_jump_to_fiber, @function
plumb_jump_to_fiber:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size plumb_jump_to_fiber, .-plumb_jump_to_fiber
)");
extern "C" void plumb_jump_to_fiber(void** kept, void* stack_pointer);

namespace plumb::gpu::emulated {

void Fiber::prepare(std::byte* top, void (*entry)()) {
  auto* word = reinterpret_cast<std::uint64_t*>(top);
  *--word = 0;  // the return address's slot: aligns the stack as after a call
  *--word = reinterpret_cast<std::uint64_t>(entry);
  for (int kept = 0; kept < 6; ++kept) *--word = 0;
  context_ = word;
}

void Fiber::jump(Fiber& from, Fiber& to) {
  plumb_jump_to_fiber(&from.context_, to.context_);
}

void Fiber::release() {}

}  // namespace plumb::gpu::emulated
