#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/half_sum.h"
#include "comm/job.h"
#include "comm/mpi_check.h"
#include "comm/ring.h"

namespace plumb {
namespace {

// Owns an MPI handle and frees it.
template <typename Handle, int (*free_handle)(Handle*)>
class Owner {
 public:
  explicit Owner(Handle handle) : handle_(handle) {}
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() { free_handle(&handle_); }
  Handle get() const { return handle_; }

 private:
  Handle handle_;
};
using CommunicatorOwner = Owner<MPI_Comm, MPI_Comm_free>;
using DatatypeOwner = Owner<MPI_Datatype, MPI_Type_free>;
using OperationOwner = Owner<MPI_Op, MPI_Op_free>;

void add_f16_elements(void* in, void* in_out, int* count, MPI_Datatype*) {
  add_f16(static_cast<const _Float16*>(in), static_cast<_Float16*>(in_out), static_cast<std::size_t>(*count));
}

void add_bf16_elements(void* in, void* in_out, int* count, MPI_Datatype*) {
  add_bf16(static_cast<const std::uint16_t*>(in), static_cast<std::uint16_t*>(in_out),
           static_cast<std::size_t>(*count));
}

CommunicatorOwner duplicate(MPI_Comm communicator) {
  MPI_Comm copy = MPI_COMM_NULL;
  check(MPI_Comm_dup(communicator, &copy), "MPI_Comm_dup");
  return CommunicatorOwner(copy);
}

// Ranks in the order of their hosts: a ring enters and leaves each host once.
RanksByHost sort_by_host(MPI_Comm communicator, const Job& job) {
  std::vector<int> ranks(static_cast<std::size_t>(job.size())), hosts(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const int mine = job.first_rank_of_host();
  check(MPI_Allgather(&mine, 1, MPI_INT, hosts.data(), 1, MPI_INT, communicator), "MPI_Allgather");
  std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) {
    return hosts[static_cast<std::size_t>(a)] < hosts[static_cast<std::size_t>(b)];
  });
  const auto here = std::find(ranks.begin(), ranks.end(), job.rank());
  return {communicator, static_cast<std::size_t>(here - ranks.begin()), std::move(ranks)};
}

// Between hosts a message below Open MPI's eager limit for TCP (64 KiB with its header) leaves without asking
// the receiver, which may be computing: 25 MB over four hosts at 1 Gbit/s take 0.36 s, in messages of 128 KiB
// 0.42 s (0.57 s if ranks poll every 8 ms). Shared memory has other costs: 25 MB over two ranks that poll
// every 8 ms take 104 ms in messages of 60 KiB, 67 ms in 128 KiB, 51 ms in 256 KiB.
std::size_t message_bytes_for(const Job& job) {
  return std::size_t{job.nodes() > 1 ? 60u : 256u} << 10;
}

// MPI has no type for f16 or bf16.
DatatypeOwner make_half() {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  check(MPI_Type_contiguous(2, MPI_BYTE, &type), "MPI_Type_contiguous");
  check(MPI_Type_commit(&type), "MPI_Type_commit");
  return DatatypeOwner(type);
}

OperationOwner make_sum(MPI_User_function* add_elements) {
  MPI_Op operation = MPI_OP_NULL;
  check(MPI_Op_create(add_elements, 1, &operation), "MPI_Op_create");
  return OperationOwner(operation);
}

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(const Job& job, const MpiCommunicatorOptions& options)
      : communicator_(duplicate(MPI_COMM_WORLD)),
        half_(make_half()),
        f16_sum_(make_sum(add_f16_elements)),
        bf16_sum_(make_sum(add_bf16_elements)),
        ranks_(sort_by_host(communicator_.get(), job)),
        options_(options),
        board_(job.board()) {
    if (options_.message_bytes == 0) options_.message_bytes = message_bytes_for(job);
    tickets_.reserve(kExpectedRequests);
    requests_.reserve(kExpectedRequests);
    finished_.reserve(kExpectedRequests);
    under_way_.reserve(kExpectedRequests);
    recorded_.reserve(StatusBoard::kKept);
    idle_rings_.reserve(kExpectedRequests);
    while (idle_rings_.size() < kExpectedAtOnce) idle_rings_.push_back(make_ring());
  }

  std::string name() const override { return "mpi"; }
  int size() const override { return static_cast<int>(ranks_.ranks.size()); }

  Ticket start(const Collective& collective, std::byte* data) override {
    const Ticket ticket = next_ticket_++;
    if (collective.elements == 0) return ticket;
    if (board_) record(ticket, collective);
    const bool is_short = collective.bytes() < options_.ring_from_bytes;
    if (collective.kind == Collective::Kind::broadcast)
      start_broadcast(ticket, collective, data);
    else if (is_short && collective.kind != Collective::Kind::reduce_scatter_sum)
      start_short(ticket, collective, data);
    else
      start_ring(ticket, collective, data);
    return ticket;
  }

  void progress() override {
    advance();
    // They end in the order in which they started, or nearly.
    std::size_t ended = 0;
    while (ended < recorded_.size() && done(recorded_[ended].first)) board_->leave(recorded_[ended++].second);
    recorded_.erase(recorded_.begin(), recorded_.begin() + static_cast<std::ptrdiff_t>(ended));
  }

  bool done(Ticket ticket) const override {
    return std::ranges::find(tickets_, ticket) == tickets_.end() &&
           std::ranges::find(under_way_, ticket, &UnderWay::ticket) == under_way_.end();
  }

  // Polls, as MPI_Wait would: the other collectives move on, too.
  void wait(Ticket ticket) override {
    do progress();
    while (!done(ticket));
  }

 private:
  // Reserved, so that start() doesn't allocate inside the timed window. More are added when more collectives
  // are under way; they stay.
  static constexpr std::size_t kExpectedRequests = 256, kExpectedAtOnce = 8;
  static constexpr Ticket kTags = 32768;  // that MPI guarantees

  using Ring = std::unique_ptr<RingExchange>;
  struct UnderWay {
    Ticket ticket;
    Ring ring;
  };

  void record(Ticket ticket, const Collective& collective) {
    const auto& names = options_.buffer_names;
    const std::string_view name =
        collective.buffer < names.size() ? std::string_view(names[collective.buffer]) : std::string_view();
    recorded_.emplace_back(ticket, board_->enter(name_of(collective.kind), name, collective.bytes()));
  }

  void advance() {
    for (const UnderWay& one : under_way_) one.ring->advance();
    std::erase_if(under_way_, [&](UnderWay& one) {
      const bool ended = one.ring->ended();
      if (ended) idle_rings_.push_back(std::move(one.ring));
      return ended;
    });
    if (requests_.empty()) return;
    int count = 0;
    finished_.resize(requests_.size());
    check(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, finished_.data(),
                       MPI_STATUSES_IGNORE),
          "MPI_Testsome");
    if (count <= 0) return;
    std::erase_if(tickets_, [&](const Ticket& one) {
      return requests_[static_cast<std::size_t>(&one - tickets_.data())] == MPI_REQUEST_NULL;
    });
    std::erase(requests_, MPI_REQUEST_NULL);
  }

  Ring make_ring() const { return std::make_unique<RingExchange>(ranks_, options_.message_bytes); }
  Ring take_ring() {
    if (idle_rings_.empty()) return make_ring();
    Ring last = std::move(idle_rings_.back());
    idle_rings_.pop_back();
    return last;
  }

  void start_ring(Ticket ticket, const Collective& collective, std::byte* data) {
    under_way_.emplace_back(ticket, take_ring())
        .ring->start({.data = data,
                      .elements = collective.elements,
                      .element_bytes = bytes_of(collective.dtype),
                      .reduces = collective.kind != Collective::Kind::allgather,
                      .gathers = collective.kind != Collective::Kind::reduce_scatter_sum,
                      .type = summed_type(collective.dtype),
                      .operation = operation_of(collective),
                      .tag = static_cast<int>(ticket % kTags)});
  }

  void await(Ticket ticket, MPI_Request request) {
    tickets_.push_back(ticket);
    requests_.push_back(request);
  }

  void start_short(Ticket ticket, const Collective& collective, std::byte* data) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (collective.kind == Collective::Kind::allgather)
      check(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data,
                           static_cast<int>(collective.bytes()) / size(), MPI_BYTE, communicator_.get(),
                           &request),
            "MPI_Iallgather");
    else
      check(MPI_Iallreduce(MPI_IN_PLACE, data, static_cast<int>(collective.elements),
                           summed_type(collective.dtype), operation_of(collective), communicator_.get(),
                           &request),
            "MPI_Iallreduce");
    await(ticket, request);
  }

  // From rank 0, in pieces that a call's count can hold.
  void start_broadcast(Ticket ticket, const Collective& collective, std::byte* data) {
    constexpr std::size_t kMostPerCall = std::size_t{1} << 30;
    const std::size_t bytes = collective.bytes();
    for (std::size_t begin = 0; begin < bytes; begin += kMostPerCall) {
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Ibcast(data + begin, static_cast<int>(std::min(kMostPerCall, bytes - begin)), MPI_BYTE, 0,
                       communicator_.get(), &request),
            "MPI_Ibcast");
      await(ticket, request);
    }
  }

  MPI_Datatype summed_type(DType dtype) const { return dtype == DType::f32 ? MPI_FLOAT : half_.get(); }

  MPI_Op operation_of(const Collective& collective) const {
    if (collective.kind == Collective::Kind::allreduce_max) return MPI_MAX;
    if (collective.dtype == DType::f16) return f16_sum_.get();
    if (collective.dtype == DType::bf16) return bf16_sum_.get();
    return MPI_SUM;
  }

  CommunicatorOwner communicator_;
  DatatypeOwner half_;
  OperationOwner f16_sum_, bf16_sum_;
  RanksByHost ranks_;
  MpiCommunicatorOptions options_;
  Ticket next_ticket_ = 0;
  std::vector<Ring> idle_rings_;
  std::vector<UnderWay> under_way_;
  // MPI's own collectives under way, or parts of them: request i belongs to ticket i. MPI_Testsome writes
  // finished_.
  std::vector<Ticket> tickets_;
  std::vector<MPI_Request> requests_;
  std::vector<int> finished_;
  StatusBoard* board_;                                      // may be null
  std::vector<std::pair<Ticket, std::uint64_t>> recorded_;  // with sequence numbers, in start order
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(const Job& job, const MpiCommunicatorOptions& options) {
  return std::make_unique<MpiCommunicator>(job, options);
}

}  // namespace plumb
