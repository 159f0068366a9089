// Messages in a device's memory and the communicator that carries them: training's exchange without training.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/run/device_memory.h"
#include "comm/communicator.h"
#include "comm/job.h"
#include "kernels/device.h"
#include "kernels/program/program.h"

namespace plumb {

// One collective over a message. `collective.buffer` holds the result.
struct Transfer {
  Collective collective;
  // Out of place: the buffer with this rank's input, which is copied first: the copy is part of the time.
  std::optional<BufferId> from = std::nullopt;
};

class Exchange {
 public:
  struct Message {
    std::string name;
    std::size_t bytes = 0;
  };

  // Every rank calls it, with a device that it shares at most with `ranks_per_gpu` - 1 others. Throws
  // Error(out_of_memory) where the messages don't fit into the rank's share of the device's memory.
  Exchange(const Job& job, Device& device, const std::vector<Message>& messages, const std::string& comm,
           int ranks_per_gpu);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  BufferId buffer_of(std::size_t message) const { return first_buffer_ + message; }

  // Carries it out `iterations` times after `warmup` untimed ones, back to back. Returns seconds of each
  // timed iteration on this rank, by the device's clock. Collective.
  std::vector<double> time(const Transfer& transfer, int warmup, int iterations);
  // Once, until it has ended.
  void carry_out(const Transfer& transfer);

  // Copies between the host and buffers.
  DeviceMemory& memory() { return memory_; }

  const Job& job() const { return job_; }

 private:
  void bind(int ranks_per_gpu);
  // Enqueues it, or on a device that doesn't run behind the host's back carries it out.
  void enqueue(const Transfer& transfer);
  void copy_input(const Transfer& transfer);

  const Job& job_;
  Device& device_;
  DeviceMemory memory_;
  Program program_;  // buffers only
  BufferId first_buffer_;
  std::unique_ptr<Communicator> communicator_;
};

}  // namespace plumb
