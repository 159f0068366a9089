#include "bench/run/device_communicator.h"

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/mpi_communicator.h"
#include "comm/nccl_communicator.h"
#include "comm/staged_communicator.h"
#include "comm/status_board.h"

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

// Records the collectives of `carrier`, which the host carries, on `board`. `names`: of buffers, by BufferId;
// others have none. `board` must outlive it. An end is recorded at the first progress() or wait() that sees
// it.
class RecordedCommunicator : public Communicator {
 public:
  RecordedCommunicator(std::unique_ptr<Communicator> carrier, StatusBoard& board,
                       std::vector<std::string> names)
      : carrier_(std::move(carrier)), board_(board), names_(std::move(names)) {
    under_way_.reserve(StatusBoard::kKept);
  }

  std::string name() const override { return carrier_->name(); }
  int size() const override { return carrier_->size(); }

  Ticket start(const Collective& collective, std::byte* data) override {
    const std::string_view name =
        collective.buffer < names_.size() ? std::string_view(names_[collective.buffer]) : std::string_view();
    const std::uint64_t sequence = board_.enter(recorded_kind(collective.kind), name, collective.bytes());
    const Ticket ticket = carrier_->start(collective, data);
    under_way_.emplace_back(ticket, sequence);
    return ticket;
  }

  void progress() override {
    carrier_->progress();
    record_ends();
  }

  bool done(Ticket ticket) const override { return carrier_->done(ticket); }

  void wait(Ticket ticket) override {
    carrier_->wait(ticket);
    record_ends();
  }

 private:
  // They end in the order in which they started, or nearly.
  void record_ends() {
    std::size_t ended = 0;
    while (ended < under_way_.size() && carrier_->done(under_way_[ended].first))
      board_.leave(under_way_[ended++].second);
    under_way_.erase(under_way_.begin(), under_way_.begin() + static_cast<std::ptrdiff_t>(ended));
  }

  std::unique_ptr<Communicator> carrier_;
  StatusBoard& board_;
  std::vector<std::string> names_;
  std::vector<std::pair<Ticket, std::uint64_t>> under_way_;  // with sequence numbers, in start order
};

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
    mpi = std::make_unique<RecordedCommunicator>(std::move(mpi), *job.board(), std::move(names));
  }
  HostStaging* staging = device.host_staging();
  return staging ? make_staged_communicator(std::move(mpi), copies_of(*staging)) : std::move(mpi);
}

}  // namespace plumb
