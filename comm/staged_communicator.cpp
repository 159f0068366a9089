#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "kernels/device.h"

namespace plumb {
namespace {

class StagedCommunicator : public Communicator {
 public:
  StagedCommunicator(std::unique_ptr<Communicator> carrier, HostStaging& device)
      : device_(device), carrier_(std::move(carrier)) {
    in_flight_.reserve(kExpectedInFlight);
  }

  std::string name() const override { return carrier_->name(); }
  int size() const override { return carrier_->size(); }

  Ticket start(const Collective& collective, std::byte* data) override {
    const Ticket ticket = next_ticket_++;
    const std::size_t bytes = collective.bytes();
    if (bytes == 0) return ticket;
    InFlight begun{.ticket = ticket, .collective = collective, .device = data};
    begun.host = staging_for(data, bytes);
    device_.copy(begun.host, data, bytes, Lane::communication);
    begun.copied = device_.mark(Lane::communication);
    in_flight_.push_back(begun);
    return ticket;
  }

  void progress() override {
    carry_what_is_copied();
    carrier_->progress();
    copy_back_what_is_carried();
  }

  bool done(Ticket ticket) const override {
    return std::ranges::find(in_flight_, ticket, &InFlight::ticket) == in_flight_.end();
  }

  void wait(Ticket ticket) override {
    while (!done(ticket)) {
      progress();
      if (!done(ticket)) std::this_thread::yield();
    }
  }

 private:
  // Reserved entries, so that start() doesn't allocate inside the timed window.
  static constexpr std::size_t kExpectedInFlight = 256;

  // States: copying to the host until mark `copied`, running in the carrier, removed once the copy back is
  // enqueued.
  struct InFlight {
    Ticket ticket = 0;
    Collective collective;
    std::byte* device = nullptr;
    std::byte* host = nullptr;
    std::size_t copied = 0;
    std::optional<Ticket> carried;  // the carrier's ticket
  };
  // One per device buffer. The lane runs copies in order, so the last copy back ends before the buffer is
  // staged again.
  struct Staging {
    const std::byte* device = nullptr;
    std::size_t bytes = 0;
    std::shared_ptr<std::byte> host;
  };

  std::byte* staging_for(const std::byte* device, std::size_t bytes) {
    const auto found = std::ranges::find_if(
        staging_, [&](const Staging& one) { return one.device == device && one.bytes >= bytes; });
    if (found != staging_.end()) return found->host.get();
    staging_.push_back({device, bytes, device_.allocate_pinned(bytes)});
    return staging_.back().host.get();
  }

  void carry_what_is_copied() {
    for (InFlight& one : in_flight_) {
      if (one.carried) continue;
      if (!device_.reached(one.copied)) return;
      one.carried = carrier_->start(one.collective, one.host);
    }
  }

  void copy_back_what_is_carried() {
    const auto copied_back = [&](const InFlight& one) {
      if (!one.carried || !carrier_->done(*one.carried)) return false;
      device_.copy(one.device, one.host, one.collective.bytes(), Lane::communication);
      return true;
    };
    std::erase_if(in_flight_, copied_back);
  }

  HostStaging& device_;
  std::vector<Staging> staging_;
  std::unique_ptr<Communicator> carrier_;  // destroyed first: it may still use the staging buffers
  std::vector<InFlight> in_flight_;        // in start order
  Ticket next_ticket_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> make_staged_communicator(std::unique_ptr<Communicator> carrier,
                                                       HostStaging& staging) {
  return std::make_unique<StagedCommunicator>(std::move(carrier), staging);
}

}  // namespace plumb
