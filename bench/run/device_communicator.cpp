#include "bench/run/device_communicator.h"

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/ranges.h"

namespace plumb {
namespace {

constexpr std::chrono::microseconds kBetweenLaneQuestions{20};

}  // namespace

void wait_for_lane(Device& device, Communicator* communicator, Lane lane) {
  HostStaging* const staging = device.host_staging();
  if (!staging) return;  // nothing is enqueued there
  const std::size_t end = staging->mark(lane);
  while (!staging->reached(end)) {
    if (communicator) communicator->progress();
    std::this_thread::sleep_for(kBetweenLaneQuestions);
  }
}

std::unique_ptr<Communicator> make_communicator(const Job& job, const std::string& comm, bool shares_gpu,
                                                Device& device, const Program& program) {
  if (comm == "nccl") return make_nccl_communicator(job, device.queue(Lane::communication), shares_gpu);
  std::vector<std::string> names = mapped(program.buffers, &Buffer::name);
  std::unique_ptr<Communicator> mpi = make_mpi_communicator(job, {.buffer_names = std::move(names)});
  HostStaging* staging = device.host_staging();
  return staging ? make_staged_communicator(std::move(mpi), *staging) : std::move(mpi);
}

}  // namespace plumb
