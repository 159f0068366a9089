#include "comm/recorded_communicator.h"

#include <utility>

namespace plumb {
namespace {

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
    const std::uint64_t sequence =
        board_.enter(recorded_kind(collective.kind), name, collective.elements * bytes_of(collective.dtype));
    const Ticket ticket = carrier_->start(collective, data);
    under_way_.push_back({ticket, sequence});
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
  struct UnderWay {
    Ticket ticket = 0;
    std::uint64_t sequence = 0;
  };

  // They end in the order in which they started, or nearly.
  void record_ends() {
    std::size_t ended = 0;
    while (ended < under_way_.size() && carrier_->done(under_way_[ended].ticket))
      board_.leave(under_way_[ended++].sequence);
    under_way_.erase(under_way_.begin(), under_way_.begin() + static_cast<std::ptrdiff_t>(ended));
  }

  std::unique_ptr<Communicator> carrier_;
  StatusBoard& board_;
  std::vector<std::string> names_;
  std::vector<UnderWay> under_way_;  // in start order
};

}  // namespace

std::unique_ptr<Communicator> make_recorded_communicator(std::unique_ptr<Communicator> carrier,
                                                         StatusBoard& board, std::vector<std::string> names) {
  return std::make_unique<RecordedCommunicator>(std::move(carrier), board, std::move(names));
}

}  // namespace plumb
