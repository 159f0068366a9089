// Shared by the NCCL communicator tests on emulated GPUs: one GPU per rank (EMULATED_GPUS), and its memory.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/nccl_communicator.h"
#include "kernels/cuda/runtime.h"
#include "tests/comm/mpi/mpi_test.h"

namespace plumb {

template <typename T>
cuda::DeviceMemory on_gpu(const std::vector<T>& values) {
  cuda::DeviceMemory memory = cuda::allocate_device(values.size() * sizeof(T));
  cuda::check(cudaMemcpy(memory.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

template <typename T>
std::vector<T> on_host(const cuda::DeviceMemory& memory, std::size_t count) {
  std::vector<T> values(count);
  cuda::check(cudaMemcpy(values.data(), memory.get(), count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

template <typename Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error(ExitCode::ok, "no error");
}

class NcclTest : public MpiTest {
 protected:
  void SetUp() override {
    cuda::check(cudaSetDevice(job().local_rank()));
    stream = cuda::make_stream(cuda::Priority::high);
  }
  std::unique_ptr<Communicator> make(bool shares_gpu = false) const {
    return make_nccl_communicator(job(), stream.get(), shares_gpu);
  }
  void synchronize() const { cuda::check(cudaStreamSynchronize(stream.get())); }
  static int sum_of_ranks() { return job().size() * (job().size() + 1) / 2; }

  cuda::ExecutableGraph capture(const std::function<void()>& enqueue) const {
    cuda::check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
    enqueue();
    cudaGraph_t graph = nullptr;
    cuda::check(cudaStreamEndCapture(stream.get(), &graph));
    const cuda::CapturedGraph captured(graph);
    cudaGraphExec_t executable = nullptr;
    cuda::check(cudaGraphInstantiate(&executable, captured.get(), 0));
    return cuda::ExecutableGraph(executable);
  }

  cuda::Stream stream;
};

// Each runs alone: it leaves the rank's GPU or its communicators broken, or sets NCCL's variables.
class NcclFault : public NcclTest {};

}  // namespace plumb
