#include "base/error.h"
#include "kernels/cuda/plan/gpu_choice.h"
#include "kernels/cuda/runtime/runtime.h"

namespace plumb::cuda {
namespace {

int visible_gpus() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  int driver = 0;
  cudaDriverGetVersion(&driver);
  throw Error(ExitCode::unavailable,
              why_no_gpu(status == cudaSuccess ? "" : cudaGetErrorString(status), driver, CUDART_VERSION));
}

int attribute(cudaDeviceAttr which, int gpu) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, gpu));
  return value;
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

}  // namespace

SelectedGpu select_gpu(int local_rank) {
  const int index = local_rank % visible_gpus();
  SelectedGpu gpu;
  check(cudaSetDevice(index));
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index));
  require_architecture(10 * properties.major + properties.minor, PLUMB_BUILT_ARCHITECTURES, properties.name);
  gpu.uuid = uuid_text(properties.uuid);
  std::size_t total = 0;
  check(cudaMemGetInfo(&gpu.free_bytes, &total));
  // Memory transfers data twice per clock; the bus width is in bits.
  const double memory_hz = 1e3 * attribute(cudaDevAttrMemoryClockRate, index);
  gpu.properties = {.name = properties.name,
                    .compute_capability = 10 * properties.major + properties.minor,
                    .multiprocessors = properties.multiProcessorCount,
                    .clock_hz = 1e3 * attribute(cudaDevAttrClockRate, index),
                    .memory_bytes_per_second = 2 * memory_hz * properties.memoryBusWidth / 8,
                    .memory_bytes = static_cast<double>(gpu.free_bytes)};
  int driver = 0;
  check(cudaDriverGetVersion(&driver));
  gpu.description = fmt::format("{} (sm_{}), driver for CUDA {}", gpu.properties.name,
                                gpu.properties.compute_capability, version_text(driver));
  return gpu;
}

}  // namespace plumb::cuda
