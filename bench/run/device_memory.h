// The communicator of a device, as --comm names it, and messages of known integers in the device's buffers:
// for training and for bench_allreduce.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "comm/communicator.h"
#include "comm/job.h"
#include "comm/message_pattern.h"
#include "kernels/device.h"

namespace plumb {

// `comm`: "nccl" or "mpi"; MPI carries a GPU's buffers through pinned memory. `shares_gpu`: some ranks of the
// job use the same GPU. Collective; fails as make_nccl_communicator() does. Destroy before `device` and
// `job`. Collectives that the host carries are recorded on the job's board by the names of their buffers.
std::unique_ptr<Communicator> make_communicator(const Job& job, const std::string& comm, bool shares_gpu,
                                                Device& device, const Program& program);

// Until all that was enqueued on the lane so far has run. Throws the communicator's Error(peer_lost), if
// there is one: NCCL's collectives wait for a lost rank without end.
void wait_for_lane(Device& device, Communicator* communicator, Lane lane);

// Changes a message's first elements before they are checked: a copy of them on a GPU, the buffer itself on a
// CPU. For tests.
using MessageDamage = std::function<void(std::span<std::byte> message)>;

// Messages in a device's buffers. Copies go through pinned memory where the device needs that, and wait until
// the device is idle.
class DeviceMemory {
 public:
  // `device` must outlive it. Allocates its pinned memory (8 MiB) at the first copy.
  explicit DeviceMemory(Device& device) : device_(device) {}

  // Fills the buffer with the collective's input, by the pattern.
  void fill(const Collective& collective, const MessagePattern& pattern, BufferId buffer);
  // Overwrites the collective's buffer with equal bytes.
  void overwrite(const Collective& collective, std::byte byte);
  // All elements of the collective's result that differ from the pattern's.
  MessagePattern::Wrong check(const Collective& collective, const MessagePattern& pattern,
                              const MessageDamage& damage);

  // Keeps the pinned memory until the process ends: freeing it would wait for a device that hangs.
  void abandon() { new std::shared_ptr<std::byte>(std::move(staging_)); }

 private:
  template <typename Each>
  void in_pieces(const Collective& collective, BufferId buffer, Access access, Each each);

  Device& device_;
  std::shared_ptr<std::byte> staging_;
};

}  // namespace plumb
