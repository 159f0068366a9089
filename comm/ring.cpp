#include "comm/ring.h"

#include <algorithm>

#include "comm/mpi_check.h"

namespace plumb {
namespace {

// Each receive has memory for a message; sends have none, so more of them may wait for a receiver that
// computes.
constexpr std::size_t kReceivesAtOnce = 16, kSendsAtOnce = 256;

}  // namespace

RingExchange::RingExchange(const RanksByHost& ranks, std::size_t message_bytes)
    : by_host_(ranks),
      ranks_(ranks.ranks.size()),
      message_bytes_(message_bytes),
      receives_(kReceivesAtOnce, MPI_REQUEST_NULL),
      sends_(kSendsAtOnce, MPI_REQUEST_NULL),
      arrivals_(kReceivesAtOnce * CacheLine::lines_of(message_bytes)) {}

RingExchange::~RingExchange() {
  for (; received_ < receives_posted_; ++received_) {
    MPI_Request& request = receives_[received_ % receives_.size()];
    MPI_Cancel(&request);
    MPI_Request_free(&request);
  }
}

void RingExchange::start(const Work& work) {
  work_ = work;
  const std::size_t longest_block = (work.elements + ranks_ - 1) / ranks_;
  const std::size_t most = message_bytes_ / work.element_bytes;
  messages_per_block_ = (longest_block + most - 1) / most;
  // Messages of a block are equally long, in whole cache lines.
  const std::size_t share = messages_per_block_ == 0 ? 0 : (longest_block - 1) / messages_per_block_ + 1;
  elements_per_message_ = std::min(
      most, CacheLine::lines_of(share * work.element_bytes) * (sizeof(CacheLine) / work.element_bytes));
  messages_ = half() * (work.reduces && work.gathers ? 2 : 1);
  receives_posted_ = received_ = sends_posted_ = sent_ = 0;
  advance();
}

// Messages of the n - 1 steps of either half.
std::size_t RingExchange::half() const {
  return (ranks_ - 1) * messages_per_block_;
}

// In step s the rank at position p sends the block of position p - 1 - s (`behind` is 1) and receives that of
// p - 2 - s (2). An allgather alone begins at step n - 1.
RingExchange::Piece RingExchange::piece(std::size_t message, std::size_t behind) const {
  const std::size_t step = (work_.reduces ? 0 : ranks_ - 1) + message / messages_per_block_;
  const auto block = static_cast<std::size_t>(rank_at(by_host_.position + 2 * ranks_ - behind - step));
  const std::size_t end = (block + 1) * work_.elements / ranks_;
  const std::size_t begin =
      std::min(end, block * work_.elements / ranks_ + message % messages_per_block_ * elements_per_message_);
  return {begin, std::min(end - begin, elements_per_message_)};
}

void RingExchange::advance() {
  for (bool moves = !ended(); moves;) {
    while (may_post_receive()) post_receive();
    while (may_post_send()) post_send();
    moves = take_received() || drop_sent();
  }
}

std::byte* RingExchange::arrival(std::size_t message) {
  return arrivals_[message % receives_.size() * (arrivals_.size() / receives_.size())].bytes;
}

bool RingExchange::may_post_receive() const {
  if (receives_posted_ == messages_ || receives_posted_ == received_ + receives_.size()) return false;
  // A result overwrites the partial sum that was sent n - 1 steps before.
  const bool overwrites_sent = work_.reduces && receives_posted_ >= half();
  return !overwrites_sent || sent_ > receives_posted_ - half();
}

void RingExchange::post_receive() {
  const Piece result = piece(receives_posted_, 2);
  const std::size_t slot = receives_posted_ % receives_.size();
  std::byte* into = adds(receives_posted_) ? arrival(receives_posted_) : at(result);
  const int left = rank_at(by_host_.position + ranks_ - 1);
  check(MPI_Irecv(into, static_cast<int>(result.count * work_.element_bytes), MPI_BYTE, left, work_.tag,
                  by_host_.communicator, &receives_[slot]),
        "MPI_Irecv");
  ++receives_posted_;
}

// The first block is there from the start, each later one arrives in the step before.
bool RingExchange::may_post_send() const {
  return sends_posted_ < messages_ && sends_posted_ < sent_ + sends_.size() &&
         sends_posted_ < received_ + messages_per_block_;
}

void RingExchange::post_send() {
  const Piece from = piece(sends_posted_, 1);
  const int right = rank_at(by_host_.position + 1);
  check(MPI_Isend(at(from), static_cast<int>(from.count * work_.element_bytes), MPI_BYTE, right, work_.tag,
                  by_host_.communicator, &sends_[sends_posted_ % sends_.size()]),
        "MPI_Isend");
  ++sends_posted_;
}

// In the order of messages: ranks send them in that order, so the next one arrives first.
bool RingExchange::take_received() {
  const std::size_t slot = received_ % receives_.size();
  if (received_ == receives_posted_ || !has_ended(receives_[slot])) return false;
  if (adds(received_)) {
    const Piece sum = piece(received_, 2);
    check(MPI_Reduce_local(arrival(received_), at(sum), static_cast<int>(sum.count), work_.type,
                           work_.operation),
          "MPI_Reduce_local");
  }
  ++received_;
  return true;
}

bool RingExchange::drop_sent() {
  if (sent_ == sends_posted_ || !has_ended(sends_[sent_ % sends_.size()])) return false;
  ++sent_;
  return true;
}

}  // namespace plumb
