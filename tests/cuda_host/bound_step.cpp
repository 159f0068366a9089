#include "tests/cuda_host/bound_step.h"

#include <cstring>
#include <stdexcept>

#include "kernels/memory_plan.h"

namespace plumb::cuda {
std::unique_ptr<ConvCandidates> NoConvolutions::candidates(const ConvProblem&, std::size_t) {
  throw std::logic_error("no convolution was expected");
}

void BoundStep::run(Finish (*prepare)(Context&, Step&), int times) {
  NoConvolutions convolutions;
  const std::unique_ptr<GemmEngine> products = make_gemm_engine();
  Context context{graph_, rule, program_, convolutions, *products, nullptr, records.data()};
  const Finish finish = prepare(context, step);
  program_.steps = {step};
  const MemoryPlan plan = plan_memory(program_, 16);
  Operand arena(DType::u8, plan.arena_bytes);
  for (BufferId id = 0; id < operands_.size(); ++id)
    std::memcpy(arena.data() + plan.offsets[id], operands_[id].data(), program_.buffers[id].bytes);
  const ComputeFn compute = finish(Arena(arena.data(), plan));
  for (int i = 0; i < times; ++i) compute();
  for (BufferId id = 0; id < operands_.size(); ++id)
    std::memcpy(operands_[id].data(), arena.data() + plan.offsets[id], program_.buffers[id].bytes);
}

}  // namespace plumb::cuda
