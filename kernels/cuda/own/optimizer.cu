#include "kernels/cuda/own/elements.h"
#include "kernels/cuda/own/optimizer.h"

namespace plumb::cuda {
namespace {

// Calls use(T{}) with a tensor's type, which is known at run time; the same for all threads of a block.
template <typename Use>
__device__ void with_stored_type(DType dtype, const Use& use) {
  switch (dtype) {
    case DType::f16:
      return use(__half{});
    case DType::bf16:
      return use(__nv_bfloat16{});
    default:
      return use(float{});
  }
}

template <int kCount>
__device__ void load_any(DType dtype, const std::byte* from, int first, float (&values)[kCount]) {
  with_stored_type(dtype, [&]<typename T>(T) { load(as<T>(from) + first, values); });
}

// pass(integral_constant n, first) for each n elements of this thread in a chunk of `count`: kPerThread, and
// one at the end of a tensor.
template <typename Pass>
__device__ void for_share_of_chunk(int count, const Pass& pass) {
  const int whole = count / kPerThread * kPerThread, thread = static_cast<int>(threadIdx.x);
  for (int first = thread * kPerThread; first < whole; first += kThreads * kPerThread)
    pass(std::integral_constant<int, kPerThread>{}, first);
#pragma unroll 1
  for (int first = whole + thread; first < count; first += kThreads)
    pass(std::integral_constant<int, 1>{}, first);
}

// Factors of a parameter's update.
struct UpdateFactors {
  float learning_rate = 0, momentum = 0, decay = 0;
  float gradient_scale = 1;  // undoes loss scaling
};
__device__ UpdateFactors factors_of(const State* state, float momentum, float decay) {
  return {.learning_rate = state->step.learning_rate,
          .momentum = momentum,
          .decay = decay,
          .gradient_scale = state->step.gradient_scale / state->step.loss_scale};
}

template <bool kNesterov, int kCount>
__device__ void update_elements(const UpdateFactors& by, float (&weight)[kCount], float (&velocity)[kCount],
                                const float (&gradient)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float slope = by.gradient_scale * gradient[i] + by.decay * weight[i];
    velocity[i] = by.momentum * velocity[i] + slope;
    weight[i] -= by.learning_rate * (kNesterov ? slope + by.momentum * velocity[i] : velocity[i]);
  }
}

// Block i updates chunk i. Per element: reads master, momentum and gradient, writes master, momentum and the
// copy: 12 + 8 bytes in f32, 10 + 10 in half precision. Bound by memory; nothing is read twice.
template <bool kNesterov>
__global__ void update(const UpdateChunk* chunks, const State* state, const float* overflow, float momentum,
                       float weight_decay) {
  if (overflow != nullptr && *overflow != 0) return;
  const UpdateChunk at = chunks[blockIdx.x];
  const UpdateFactors by = factors_of(state, momentum, at.decays ? weight_decay : 0.0F);
  float* const master = gpu::in_device_memory(at.master);
  float* const velocities = gpu::in_device_memory(at.momentum);
  const std::byte* const gradients = gpu::in_device_memory(at.gradient);
  for_share_of_chunk(at.count, [&](auto elements, int first) {
    float weight[elements], velocity[elements], gradient[elements];
    load(master + first, weight);
    load(velocities + first, velocity);
    load_any(at.gradient_dtype, gradients, first, gradient);
    update_elements<kNesterov>(by, weight, velocity, gradient);
    store(velocities + first, velocity);
    store(master + first, weight);
    if (at.copy != nullptr)
      with_stored_type(at.copy_dtype,
                       [&]<typename T>(T) { store(as<T>(gpu::in_device_memory(at.copy)) + first, weight); });
  });
}

// A warp updates one sampled row at any address. Per element: reads 12 bytes and writes 8 in f32, 16 at a
// time. Bound by memory: a row is 2 KB for an embedding of 512.
template <typename T>
__global__ void update_rows(UpdatedRows at, const State* state, const float* overflow, float momentum,
                            bool nesterov) {
  constexpr int kCount = kPack<T>;
  if (overflow != nullptr && *overflow != 0) return;
  const std::int64_t sample = std::int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  if (sample >= at.capacity || sample >= *at.sample_count) return;
  const UpdateFactors by = factors_of(state, momentum, at.weight_decay);
  const std::int64_t row = std::int64_t{at.samples[sample]} * at.columns;
  const T* gradients = as<T>(at.gradient) + sample * at.columns;
  for (std::int64_t first = threadIdx.x % 32 * kCount; first < at.columns; first += 32 * kCount) {
    float weight[kCount], velocity[kCount], gradient[kCount];
    load(at.master + row + first, weight);
    load(at.momentum + row + first, velocity);
    load(gradients + first, gradient);
    if (nesterov)
      update_elements<true>(by, weight, velocity, gradient);
    else
      update_elements<false>(by, weight, velocity, gradient);
    store(at.momentum + row + first, velocity);
    store(at.master + row + first, weight);
  }
}

__global__ void clear_overflow(float* overflow) {
  *overflow = 0;
}

// Block i searches chunk i; every thread that finds an overflow writes the same 1. Reads each gradient once,
// 4 or 2 bytes per element. Bound by memory.
__global__ void find_overflow(const GradientChunk* chunks, float* overflow) {
  const GradientChunk at = chunks[blockIdx.x];
  const std::byte* const gradient = gpu::in_device_memory(at.gradient);
  bool found = false;
  for_share_of_chunk(at.count, [&](auto elements, int first) {
    float values[elements];
    load_any(at.dtype, gradient, first, values);
#pragma unroll
    for (int i = 0; i < elements; ++i) found |= !(fabsf(values[i]) < INFINITY);  // true for a NaN, too
  });
  if (found) *overflow = 1;
}

constexpr float kLeastLossScale = 1, kMostLossScale = 16777216;

// A single thread reads and writes some 80 bytes.
__global__ void advance_state(LossScaling scaling, State* state, const float* overflow,
                              IterationRecord* records) {
  StepState& step = state->step;
  const bool skipped = overflow != nullptr && *overflow != 0;
  IterationRecord& record = records[step.iteration % kMetricsKept];
  record.loss_scale = step.loss_scale;
  record.skipped = skipped ? 1 : 0;
  record.exposed_ns = state->exposed_ns;
  record.data_wait_ns = state->data_wait_ns;
  state->exposed_ns = state->data_wait_ns = 0;
  ++step.iteration;
  if (scaling.kind != LossScaling::Kind::dynamic) return;
  step.clean_steps = skipped ? 0 : step.clean_steps + 1;
  if (skipped) step.loss_scale = fmaxf(step.loss_scale / 2, kLeastLossScale);
  if (step.clean_steps < scaling.growth_interval) return;
  step.clean_steps = 0;
  step.loss_scale = fminf(step.loss_scale * 2, kMostLossScale);
}

// A single thread reads and writes 16 bytes.
__global__ void stamp_wait(State* state, Wait what, bool after) {
  const std::uint64_t now = gpu::nanoseconds();
  if (!after)
    state->wait_began_ns = now;
  else
    (what == Wait::data ? state->data_wait_ns : state->exposed_ns) += now - state->wait_began_ns;
}

unsigned blocks_of(std::size_t chunks) {
  return blocks_for(static_cast<std::int64_t>(chunks), 1);
}

}  // namespace

void launch_update(const UpdateRule& rule, const UpdateChunk* chunks, std::size_t count, const State* state,
                   const float* overflow, cudaStream_t stream) {
  gpu::launch(rule.optimizer == Optimizer::nag ? update<true> : update<false>, blocks_of(count), kThreads, 0,
              stream, chunks, state, overflow, static_cast<float>(rule.momentum),
              static_cast<float>(rule.weight_decay));
}

void launch_update_rows(const UpdateRule& rule, const UpdatedRows& rows, const State* state,
                        const float* overflow, cudaStream_t stream) {
  with_type_of(rows.gradient_dtype, [&]<typename T>(T) {
    gpu::launch(update_rows<T>, blocks_for(rows.capacity, kThreads / 32), kThreads, 0, stream, rows, state,
                overflow, static_cast<float>(rule.momentum), rule.optimizer == Optimizer::nag);
  });
}

void launch_find_overflow(const GradientChunk* chunks, std::size_t count, float* overflow,
                          cudaStream_t stream) {
  gpu::launch(clear_overflow, 1, 1, 0, stream, overflow);
  gpu::launch(find_overflow, blocks_of(count), kThreads, 0, stream, chunks, overflow);
}

void launch_advance_state(const LossScaling& scaling, State* state, const float* overflow,
                          IterationRecord* records, cudaStream_t stream) {
  gpu::launch(advance_state, 1, 1, 0, stream, scaling, state, overflow, records);
}

void launch_stamp_wait(State* state, Wait what, bool after, cudaStream_t stream) {
  gpu::launch(stamp_wait, 1, 1, 0, stream, state, what, after);
}

}  // namespace plumb::cuda
