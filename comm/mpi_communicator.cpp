#include "comm/mpi_communicator.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/half_sum.h"
#include "comm/mpi_check.h"

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
        rank_(job.rank()),
        size_(job.size()),
        elements_per_call_(options.elements_per_call) {
    const std::size_t expected = kExpectedRequests + static_cast<std::size_t>(size_);
    requests_.reserve(expected);
    tickets_.reserve(expected);
    finished_.reserve(expected);
  }

  std::string name() const override { return "mpi"; }
  int size() const override { return size_; }

  Ticket start(const Collective& collective, std::byte* data) override {
    require_sound(collective, size_);
    const Ticket ticket = next_ticket_++;
    switch (collective.kind) {
      case Collective::Kind::allreduce_sum:
      case Collective::Kind::allreduce_max:
        start_allreduce(ticket, collective, data);
        break;
      case Collective::Kind::allgather:
        start_allgather(ticket, collective, data);
        break;
      case Collective::Kind::reduce_scatter_sum:
        start_reduce_scatter(ticket, collective, data);
        break;
      case Collective::Kind::broadcast:
        start_broadcast(ticket, collective.dtype, data, collective.elements, 0);
        break;
    }
    return ticket;
  }

  void progress() override {
    if (requests_.empty()) return;
    int count = 0;
    finished_.resize(requests_.size());
    check(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, finished_.data(),
                       MPI_STATUSES_IGNORE),
          "MPI_Testsome");
    if (count > 0) drop_finished();
  }

  bool done(Ticket ticket) const override {
    return std::find(tickets_.begin(), tickets_.end(), ticket) == tickets_.end();
  }

  void wait(Ticket ticket) override {
    for (std::size_t i = 0; i < requests_.size(); ++i)
      if (tickets_[i] == ticket) check(MPI_Wait(&requests_[i], MPI_STATUS_IGNORE), "MPI_Wait");
    drop_finished();
  }

 private:
  // Reserved requests, plus one for each rank's part of a reduce-scatter, so that start() doesn't allocate
  // inside the timed window.
  static constexpr std::size_t kExpectedRequests = 256;

  // Runs `call(first byte, count, request)` for pieces of at most elements_per_call_ elements.
  template <typename Call>
  void start_pieces(Ticket ticket, DType dtype, std::byte* data, std::size_t elements, const char* name,
                    Call&& call) {
    for (std::size_t begin = 0; begin < elements; begin += elements_per_call_) {
      const auto count = static_cast<int>(std::min(elements - begin, elements_per_call_));
      MPI_Request request = MPI_REQUEST_NULL;
      check(call(data + begin * bytes_of(dtype), count, &request), name);
      requests_.push_back(request);
      tickets_.push_back(ticket);
    }
  }

  void start_allreduce(Ticket ticket, const Collective& collective, std::byte* data) {
    start_pieces(ticket, collective.dtype, data, collective.elements, "MPI_Iallreduce",
                 [&](std::byte* piece, int count, MPI_Request* request) {
                   return MPI_Iallreduce(MPI_IN_PLACE, piece, count, type_of(collective.dtype),
                                         operation_of(collective), communicator_.get(), request);
                 });
  }

  // One MPI_Iallgather if the buffer fits one call. Otherwise each rank broadcasts its part: pieces of an
  // allgather would be strided over all ranks' parts, which a count can't express.
  void start_allgather(Ticket ticket, const Collective& collective, std::byte* data) {
    const std::size_t part = collective.elements / static_cast<std::size_t>(size_);
    const MPI_Datatype type = type_of(collective.dtype);
    if (collective.elements <= elements_per_call_) {
      start_pieces(ticket, collective.dtype, data, part, "MPI_Iallgather",
                   [&](std::byte*, int count, MPI_Request* request) {
                     return MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, count, type,
                                           communicator_.get(), request);
                   });
      return;
    }
    for (int rank = 0; rank < size_; ++rank)
      start_broadcast(ticket, collective.dtype, data + offset_of(rank, part, collective.dtype), part, rank);
  }

  void start_broadcast(Ticket ticket, DType dtype, std::byte* data, std::size_t elements, int root) {
    start_pieces(ticket, dtype, data, elements, "MPI_Ibcast",
                 [&](std::byte* piece, int count, MPI_Request* request) {
                   return MPI_Ibcast(piece, count, type_of(dtype), root, communicator_.get(), request);
                 });
  }

  // One MPI_Ireduce per part, with the owning rank as root: the sums land in place, and all ranks send and
  // sum the same amount. MPI_Ireduce_scatter_block in place would leave every rank's part at the front of the
  // buffer, and Open MPI 4 routes it through rank 0.
  void start_reduce_scatter(Ticket ticket, const Collective& collective, std::byte* data) {
    const std::size_t part = collective.elements / static_cast<std::size_t>(size_);
    for (int rank = 0; rank < size_; ++rank)
      start_pieces(ticket, collective.dtype, data + offset_of(rank, part, collective.dtype), part,
                   "MPI_Ireduce", [&](std::byte* piece, int count, MPI_Request* request) {
                     const bool mine = rank == rank_;
                     return MPI_Ireduce(mine ? MPI_IN_PLACE : piece, mine ? piece : nullptr, count,
                                        type_of(collective.dtype), operation_of(collective), rank,
                                        communicator_.get(), request);
                   });
  }

  static std::size_t offset_of(int rank, std::size_t part, DType dtype) {
    return static_cast<std::size_t>(rank) * part * bytes_of(dtype);
  }

  MPI_Datatype type_of(DType dtype) const {
    switch (dtype) {
      case DType::f32:
        return MPI_FLOAT;
      case DType::i32:
        return MPI_INT32_T;
      case DType::i64:
        return MPI_INT64_T;
      case DType::f16:
      case DType::bf16:
        return half_.get();
      case DType::u8:
        break;
    }
    return MPI_BYTE;
  }

  MPI_Op operation_of(const Collective& collective) const {
    if (collective.kind == Collective::Kind::allreduce_max) return MPI_MAX;
    if (collective.dtype == DType::f16) return f16_sum_.get();
    if (collective.dtype == DType::bf16) return bf16_sum_.get();
    return MPI_SUM;
  }

  // MPI sets finished requests to MPI_REQUEST_NULL.
  void drop_finished() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i] == MPI_REQUEST_NULL) continue;
      requests_[kept] = requests_[i];
      tickets_[kept] = tickets_[i];
      ++kept;
    }
    requests_.resize(kept);
    tickets_.resize(kept);
  }

  CommunicatorOwner communicator_;
  DatatypeOwner half_;
  OperationOwner f16_sum_, bf16_sum_;
  int rank_ = 0, size_ = 1;
  std::size_t elements_per_call_ = 0;
  Ticket next_ticket_ = 0;
  // Pending requests with their tickets, and the output of MPI_Testsome.
  std::vector<MPI_Request> requests_;
  std::vector<Ticket> tickets_;
  std::vector<int> finished_;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(const Job& job, const MpiCommunicatorOptions& options) {
  return std::make_unique<MpiCommunicator>(job, options);
}

}  // namespace plumb
