// Memory and copies of the CUDA runtime stand-in.
#include <cstring>
#include <utility>

#include "tests/cuda_host/device_memory.h"
#include "tests/cuda_host/emulated_gpus.h"
#include "tests/cuda_host/runtime_state.h"

using namespace plumb::gpu::emulated;

namespace {

enum class Where { device, pinned, pageable };

// Doesn't throw: returns false for bytes that start inside an allocation and end outside.
bool locate(const void* address, std::size_t bytes, Where& where) {
  const Allocation* whole = device_memory().find(address, bytes);
  if (!whole && device_memory().find(address, 1)) return false;
  where = !whole ? Where::pageable : whole->gpu < 0 ? Where::pinned : Where::device;
  return true;
}

bool agrees(cudaMemcpyKind kind, Where to, Where from) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return to == Where::device && from != Where::device;
    case cudaMemcpyDeviceToHost:
      return to != Where::device && from == Where::device;
    case cudaMemcpyDeviceToDevice:
      return to == Where::device && from == Where::device;
    case cudaMemcpyHostToHost:
      return to != Where::device && from != Where::device;
    default:
      return true;
  }
}

// Pageable memory is staged by the driver: read at once, and written before the call returns. A graph would
// read whatever is there at replay.
cudaError_t copy_pageable(void* to, const void* from, std::size_t bytes, Where into, cudaStream_t stream) {
  if (const cudaError_t status = refuse_if_capturing(stream)) return status;
  if (into == Where::pageable) {
    const cudaError_t status = enqueue(stream, once([=] { std::memcpy(to, from, bytes); }));
    return status || !stream ? status : cudaStreamSynchronize(stream);
  }
  const auto* first = static_cast<const std::byte*>(from);
  std::vector<std::byte> held(first, first + bytes);
  return enqueue(stream, once([to, held = std::move(held)] { std::memcpy(to, held.data(), held.size()); }));
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  const std::lock_guard lock(runtime().mutex);
  *address = nullptr;
  if (const cudaError_t status = refuse_unsafe_call()) return status;
  int gpu = 0;
  cudaGetDevice(&gpu);
  if (bytes == 0) return cudaSuccess;
  if (bytes > emulated_gpus().memory_bytes - device_memory().used_bytes(gpu))
    return fail(cudaErrorMemoryAllocation);
  *address = device_memory().allocate(bytes, gpu);
  return *address ? cudaSuccess : fail(cudaErrorMemoryAllocation);
}

// Waits for all work that may still use it.
cudaError_t cudaFree(void* address) {
  const std::lock_guard lock(runtime().mutex);
  if (!address) return cudaSuccess;
  if (const cudaError_t status = refuse_unsafe_call()) return status;
  runtime().timeline.run_all();
  return device_memory().free(address, false) ? status_of(runtime()) : fail(cudaErrorInvalidValue);
}

cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
  const std::lock_guard lock(runtime().mutex);
  *address = nullptr;
  if (const cudaError_t status = refuse_unsafe_call()) return status;
  if (bytes > 0) *address = device_memory().allocate(bytes, -1);
  return *address || bytes == 0 ? cudaSuccess : fail(cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void* address) {
  const std::lock_guard lock(runtime().mutex);
  if (!address) return cudaSuccess;
  if (const cudaError_t status = refuse_unsafe_call()) return status;
  runtime().timeline.run_all();
  return device_memory().free(address, true) ? status_of(runtime()) : fail(cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(runtime().mutex);
  int gpu = 0;
  cudaGetDevice(&gpu);
  *total = emulated_gpus().memory_bytes;
  *free = *total - device_memory().used_bytes(gpu);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const std::lock_guard lock(runtime().mutex);
  if (bytes == 0) return cudaSuccess;
  Where into = Where::pageable, out_of = Where::pageable;
  if (!locate(to, bytes, into) || !locate(from, bytes, out_of)) return fail(cudaErrorInvalidValue);
  if (!agrees(kind, into, out_of)) return fail(cudaErrorInvalidMemcpyDirection);
  if (into == Where::pageable || out_of == Where::pageable)
    return copy_pageable(to, from, bytes, into, stream);
  return enqueue(stream, once([=] { std::memmove(to, from, bytes); }));
}

// On the legacy stream: runs at once, without waiting for non-blocking streams.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const std::lock_guard lock(runtime().mutex);
  if (const cudaError_t status = refuse_unsafe_call()) return status;
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  const std::lock_guard lock(runtime().mutex);
  if (bytes == 0) return cudaSuccess;
  Where into = Where::pageable;
  if (!locate(to, bytes, into) || into == Where::pageable) return fail(cudaErrorInvalidValue);
  return enqueue(stream, once([=] { std::memset(to, value, bytes); }));
}

}  // extern "C"
