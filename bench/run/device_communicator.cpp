#include "bench/run/device_communicator.h"

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/mpi_communicator.h"
#include "comm/nccl_communicator.h"
#include "comm/recorded_communicator.h"
#include "comm/staged_communicator.h"

namespace plumb {
namespace {

DeviceCopies copies_of(HostStaging& staging) {
  return {.allocate_pinned = [&staging](std::size_t bytes) { return staging.allocate_pinned(bytes); },
          .to_host = [&staging](std::byte* host, const std::byte* from,
                                std::size_t bytes) { staging.copy(host, from, bytes, Lane::communication); },
          .to_device = [&staging](std::byte* to, const std::byte* host,
                                  std::size_t bytes) { staging.copy(to, host, bytes, Lane::communication); },
          .mark = [&staging] { return staging.mark(Lane::communication); },
          .reached = [&staging](std::size_t mark) { return staging.reached(mark); }};
}

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
  std::unique_ptr<Communicator> mpi = make_mpi_communicator(job);
  if (job.board()) {
    std::vector<std::string> names;
    for (const Buffer& buffer : program.buffers) names.push_back(buffer.name);
    mpi = make_recorded_communicator(std::move(mpi), *job.board(), std::move(names));
  }
  HostStaging* staging = device.host_staging();
  return staging ? make_staged_communicator(std::move(mpi), copies_of(*staging)) : std::move(mpi);
}

}  // namespace plumb
