// Devices, device properties and errors of the CUDA runtime stand-in.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "tests/cuda_host/emulated_gpus.h"
#include "tests/cuda_host/runtime_state.h"

using namespace plumb::gpu::emulated;

namespace plumb::gpu::emulated {
namespace {

thread_local int current_gpu = 0;
thread_local cudaError_t last_error = cudaSuccess;

EmulatedGpus read_environment() {
  EmulatedGpus gpus;
  const auto number = [](const char* name, std::size_t& value) {
    if (const char* text = std::getenv(name)) value = std::strtoull(text, nullptr, 10);
  };
  std::size_t count = 1, capability = 90, same = 0;
  number("EMULATED_GPUS", count);
  number("EMULATED_GPU_CAPABILITY", capability);
  number("EMULATED_GPU_MEMORY", gpus.memory_bytes);
  number("EMULATED_GPU_SAME_UUID", same);
  if (const char* name = std::getenv("EMULATED_GPU_NAME")) gpus.name = name;
  gpus.count = static_cast<int>(count);
  gpus.capability = static_cast<int>(capability);
  gpus.same_uuid = same != 0;
  return gpus;
}

struct ErrorText {
  const char* name;
  const char* text;
};
// Messages of the real runtime.
const std::map<cudaError_t, ErrorText>& error_texts() {
  static const std::map<cudaError_t, ErrorText> texts{
      {cudaSuccess, {"cudaSuccess", "no error"}},
      {cudaErrorInvalidValue, {"cudaErrorInvalidValue", "invalid argument"}},
      {cudaErrorMemoryAllocation, {"cudaErrorMemoryAllocation", "out of memory"}},
      {cudaErrorInvalidConfiguration, {"cudaErrorInvalidConfiguration", "invalid configuration argument"}},
      {cudaErrorInvalidMemcpyDirection,
       {"cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"}},
      {cudaErrorNoDevice, {"cudaErrorNoDevice", "no CUDA-capable device is detected"}},
      {cudaErrorInvalidDevice, {"cudaErrorInvalidDevice", "invalid device ordinal"}},
      {cudaErrorIllegalState,
       {"cudaErrorIllegalState", "the operation cannot be performed in the present state"}},
      {cudaErrorInvalidResourceHandle, {"cudaErrorInvalidResourceHandle", "invalid resource handle"}},
      {cudaErrorNotReady, {"cudaErrorNotReady", "device not ready"}},
      {cudaErrorLaunchFailure, {"cudaErrorLaunchFailure", "unspecified launch failure"}},
      {cudaErrorNotSupported, {"cudaErrorNotSupported", "operation not supported"}},
      {cudaErrorStreamCaptureUnsupported,
       {"cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"}},
      {cudaErrorStreamCaptureInvalidated,
       {"cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"}},
      {cudaErrorStreamCaptureMerge,
       {"cudaErrorStreamCaptureMerge", "operation would result in a merge of separate capture sequences"}},
      {cudaErrorStreamCaptureUnmatched,
       {"cudaErrorStreamCaptureUnmatched", "capture was not ended in the same stream as it began"}},
      {cudaErrorStreamCaptureUnjoined,
       {"cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"}},
      {cudaErrorStreamCaptureIsolation,
       {"cudaErrorStreamCaptureIsolation", "dependency created on uncaptured work in another stream"}},
      {cudaErrorStreamCaptureImplicit,
       {"cudaErrorStreamCaptureImplicit",
        "operation would make the legacy stream depend on a capturing blocking stream"}},
      {cudaErrorCapturedEvent,
       {"cudaErrorCapturedEvent", "operation not permitted on an event last recorded in a capturing stream"}},
      {cudaErrorStreamCaptureWrongThread,
       {"cudaErrorStreamCaptureWrongThread",
        "attempt to terminate a thread-local capture sequence from another thread"}}};
  return texts;
}

}  // namespace

const EmulatedGpus& emulated_gpus() {
  static const EmulatedGpus gpus = read_environment();
  return gpus;
}

cudaError_t fail(cudaError_t error) {
  last_error = error;
  return error;
}

}  // namespace plumb::gpu::emulated

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = emulated_gpus().count;
  return *count > 0 ? cudaSuccess : fail(cudaErrorNoDevice);
}
cudaError_t cudaSetDevice(int gpu) {
  if (gpu < 0 || gpu >= emulated_gpus().count) return fail(cudaErrorInvalidDevice);
  current_gpu = gpu;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* gpu) {
  *gpu = current_gpu;
  return cudaSuccess;
}

// An H200's clocks, bus and multiprocessors.
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int gpu) {
  if (gpu < 0 || gpu >= emulated_gpus().count) return fail(cudaErrorInvalidDevice);
  const EmulatedGpus& gpus = emulated_gpus();
  *properties = cudaDeviceProp{};
  std::snprintf(properties->name, sizeof properties->name, "%s", gpus.name.c_str());
  const std::string uuid = "emulated " + std::to_string(gpus.same_uuid ? 0 : gpu);
  uuid.copy(properties->uuid.bytes, sizeof properties->uuid.bytes);
  properties->major = gpus.capability / 10;
  properties->minor = gpus.capability % 10;
  properties->totalGlobalMem = gpus.memory_bytes;
  properties->multiProcessorCount = 132;
  properties->memoryBusWidth = 6144;
  properties->l2CacheSize = 1 << 16;  // small: tuning flushes it by reading, slow here
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  if (attribute != cudaDevAttrClockRate && attribute != cudaDevAttrMemoryClockRate)
    return fail(cudaErrorInvalidValue);
  *value = attribute == cudaDevAttrClockRate ? 1980000 : 3201000;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int gpu) {
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0", gpu + 1);
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = emulated_gpus().count > 0 ? CUDART_VERSION : 0;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}
const char* cudaGetErrorName(cudaError_t error) {
  const auto found = error_texts().find(error);
  return found == error_texts().end() ? "unrecognized error code" : found->second.name;
}
// A kernel's failure includes the emulator's message.
const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorLaunchFailure && !runtime().timeline.failure().empty())
    return runtime().timeline.failure().c_str();
  const auto found = error_texts().find(error);
  return found == error_texts().end() ? "unrecognized error code" : found->second.text;
}

}  // extern "C"
