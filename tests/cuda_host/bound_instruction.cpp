#include "tests/cuda_host/bound_instruction.h"

#include <cstring>
#include <stdexcept>

#include "kernels/program/memory_plan.h"

namespace plumb::cuda {
std::unique_ptr<ConvCandidates> NoConvolutions::candidates(const ConvProblem&, std::size_t) {
  throw std::logic_error("no convolution was expected");
}

void BoundInstruction::run(Operation operation, int times) {
  NoConvolutions convolutions;
  const std::unique_ptr<GemmEngine> products = make_gemm_engine();
  Context context{{convolutions, *products, nullptr, records.data()}, graph_, rule, program_};
  instruction.operation = std::move(operation);
  const Binder binder = prepare_instruction(context, instruction);
  program_.instructions = {instruction};
  const MemoryPlan plan = plan_memory(program_, 16);
  GuardedTensor arena(DType::u8, plan.arena_bytes);
  for (BufferId id = 0; id < tensors_.size(); ++id)
    std::memcpy(arena.data() + plan.offsets[id], tensors_[id].data(), program_.buffers[id].bytes);
  const ComputeFn compute = binder(Arena(arena.data(), plan));
  for (int i = 0; i < times; ++i) compute();
  for (BufferId id = 0; id < tensors_.size(); ++id)
    std::memcpy(tensors_[id].data(), arena.data() + plan.offsets[id], program_.buffers[id].bytes);
}

}  // namespace plumb::cuda
