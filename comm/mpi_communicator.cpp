#include "comm/mpi_communicator.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "comm/bf16_sum.h"
#include "comm/f16_sum.h"
#include "comm/mpi_check.h"

namespace plumb {
namespace {

// A handle of MPI's with the function that frees it.
template <typename Handle, int (*free_handle)(Handle*)>
class Owner {
 public:
  Owner() = default;
  explicit Owner(Handle handle) : handle_(handle), owns_(true) {}
  Owner(Owner&& other) noexcept : handle_(other.handle_), owns_(std::exchange(other.owns_, false)) {}
  Owner& operator=(Owner&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(owns_, other.owns_);
    return *this;
  }
  ~Owner() {
    if (owns_) free_handle(&handle_);
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_{};
  bool owns_ = false;
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

// MPI has no type of 2 bytes that is a number of ours.
DatatypeOwner make_half() {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  check(MPI_Type_contiguous(2, MPI_BYTE, &type), "MPI_Type_contiguous");
  DatatypeOwner owner(type);
  check(MPI_Type_commit(&type), "MPI_Type_commit");
  return owner;
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
        size_(job.size()),
        elements_per_call_(options.elements_per_call) {
    requests_.reserve(kExpectedRequests);
    tickets_.reserve(kExpectedRequests);
    finished_.reserve(kExpectedRequests);
  }

  std::string name() const override { return "mpi"; }
  int size() const override { return size_; }

  Ticket start(const Collective& collective, std::byte* data) override {
    const auto [type, operation] = sum_of(collective.dtype);
    const Ticket ticket = next_ticket_++;
    for (std::size_t begin = 0; begin < collective.elements; begin += elements_per_call_) {
      const std::size_t count = std::min(collective.elements - begin, elements_per_call_);
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Iallreduce(MPI_IN_PLACE, data + begin * bytes_of(collective.dtype), static_cast<int>(count),
                           type, operation, communicator_.get(), &request),
            "MPI_Iallreduce");
      requests_.push_back(request);
      tickets_.push_back(ticket);
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
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (tickets_[i] == ticket) check(MPI_Wait(&requests_[i], MPI_STATUS_IGNORE), "MPI_Wait");
    }
    drop_finished();
  }

 private:
  // So many may be under way before a list grows: start() shouldn't allocate inside the timed window.
  static constexpr std::size_t kExpectedRequests = 256;

  std::pair<MPI_Datatype, MPI_Op> sum_of(DType dtype) const {
    if (dtype == DType::f32) return {MPI_FLOAT, MPI_SUM};
    if (dtype == DType::f16) return {half_.get(), f16_sum_.get()};
    if (dtype == DType::bf16) return {half_.get(), bf16_sum_.get()};
    throw Error(ExitCode::internal, "--comm mpi can't sum gradients in " + std::string(name_of(dtype)) +
                                        "; use --reduce-dtype fp32 or fp16");
  }

  // MPI leaves MPI_REQUEST_NULL where a request has ended.
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
  int size_ = 1;
  std::size_t elements_per_call_ = 0;
  Ticket next_ticket_ = 0;
  // What is under way: each request, the ticket it belongs to, and room for what MPI_Testsome reports.
  std::vector<MPI_Request> requests_;
  std::vector<Ticket> tickets_;
  std::vector<int> finished_;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(const Job& job, const MpiCommunicatorOptions& options) {
  return std::make_unique<MpiCommunicator>(job, options);
}

}  // namespace plumb
