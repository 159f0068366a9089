// Every collective kind over MPI, around the ring in short messages, and from device memory. Integer patterns
// sum exactly in any order, so a single wrong element shows.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <thread>
#include <type_traits>

#include "comm/communicator.h"
#include "tests/comm/manual_lane.h"
#include "tests/comm/mpi/mpi_test.h"

namespace plumb {
namespace {

using Kind = Collective::Kind;

enum class CarriedBy { mpi, short_messages, staging };
std::string text_of(const testing::TestParamInfo<CarriedBy>& info) {
  switch (info.param) {
    case CarriedBy::mpi:
      return "ByMpi";
    case CarriedBy::short_messages:
      return "InShortMessages";
    case CarriedBy::staging:
      break;
  }
  return "FromDeviceMemory";
}

template <typename T>
DType dtype_of() {
  if (std::is_same_v<T, float>) return DType::f32;
  if (std::is_same_v<T, _Float16>) return DType::f16;
  if (std::is_same_v<T, std::int32_t>) return DType::i32;
  return std::is_same_v<T, std::int64_t> ? DType::i64 : DType::u8;
}

// At most 15 + 3 * rank.
int pattern(std::size_t element, int rank) {
  return static_cast<int>((element * 7 + element / 100) % 16) + rank * 3;
}

class CollectiveKinds : public MpiTest, public testing::WithParamInterface<CarriedBy> {
 protected:
  CollectiveKinds() {
    MpiCommunicatorOptions options;
    if (GetParam() == CarriedBy::short_messages) options = {.ring_from_bytes = 0, .message_bytes = 28};
    communicator = make_mpi_communicator(job(), options);
    lane.moves_when_asked = true;
    if (GetParam() == CarriedBy::staging)
      communicator = make_staged_communicator(std::move(communicator), lane);
  }
  std::size_t ranks() const { return static_cast<std::size_t>(job().size()); }
  std::size_t own_begin(std::size_t elements) const {
    return static_cast<std::size_t>(job().rank()) * (elements / ranks());
  }
  std::size_t own_end(std::size_t elements) const { return own_begin(elements) + elements / ranks(); }

  template <typename T>
  Communicator::Ticket start(Kind kind, std::vector<T>& values) {
    return communicator->start({.kind = kind, .elements = values.size(), .dtype = dtype_of<T>()},
                               reinterpret_cast<std::byte*>(values.data()));
  }
  void finish(Communicator::Ticket ticket) {
    communicator->wait(ticket);
    EXPECT_TRUE(communicator->done(ticket));
    lane.run_all();
  }

  // This rank's input, and the expected output where it is specified.
  template <typename T>
  std::vector<T> before(Kind kind, std::size_t elements) const {
    std::vector<T> values(elements, T(99));
    const bool only_own = kind == Kind::allgather;
    for (std::size_t i = 0; i < elements; ++i)
      if (!only_own || (i >= own_begin(elements) && i < own_end(elements)))
        values[i] = static_cast<T>(pattern(i, job().rank()));
    return values;
  }
  template <typename T>
  void refill(Kind kind, std::vector<T>& values) const {
    const std::vector<T> fresh = before<T>(kind, values.size());
    std::copy(fresh.begin(), fresh.end(), values.begin());
  }
  int sum_of_patterns(std::size_t element) const {
    int sum = 0;
    for (int rank = 0; rank < job().size(); ++rank) sum += pattern(element, rank);
    return sum;
  }
  int wanted(Kind kind, std::size_t element, std::size_t elements) const {
    if (kind == Kind::allgather) return pattern(element, static_cast<int>(element / (elements / ranks())));
    return kind == Kind::allreduce_max ? pattern(element, job().size() - 1) : sum_of_patterns(element);
  }
  template <typename T>
  void expect_done(Kind kind, const std::vector<T>& values) const {
    const bool own_only = kind == Kind::reduce_scatter_sum;
    const std::size_t begin = own_only ? own_begin(values.size()) : 0;
    const std::size_t end = own_only ? own_end(values.size()) : values.size();
    for (std::size_t i = begin; i < end; ++i) {
      const int value = static_cast<int>(values[i]);
      if (value == wanted(kind, i, values.size())) continue;
      ADD_FAILURE() << name_of(kind) << " of " << values.size() << " " << name_of(dtype_of<T>())
                    << ": element " << i << " is " << value << ", not " << wanted(kind, i, values.size());
      return;
    }
  }
  template <typename T>
  void expect_carried(Kind kind) {
    for (std::size_t part : {0u, 1u, 6u, 7u, 8u, 1000u, 30'001u}) {
      if (GetParam() == CarriedBy::short_messages && part > 1000) continue;
      std::vector<T> values = before<T>(kind, part * ranks());
      finish(start(kind, values));
      expect_done(kind, values);
    }
  }

  ManualLane lane;
  std::unique_ptr<Communicator> communicator;
};

TEST_P(CollectiveKinds, GatherEveryDtype) {
  expect_carried<float>(Kind::allgather);
  expect_carried<_Float16>(Kind::allgather);
  expect_carried<std::int32_t>(Kind::allgather);
  expect_carried<std::int64_t>(Kind::allgather);
  expect_carried<std::uint8_t>(Kind::allgather);
}

TEST_P(CollectiveKinds, SumIntoEachRanksPart) {
  expect_carried<float>(Kind::reduce_scatter_sum);
  expect_carried<_Float16>(Kind::reduce_scatter_sum);
}

TEST_P(CollectiveKinds, TakeMaxima) {
  expect_carried<float>(Kind::allreduce_max);
}

TEST_P(CollectiveKinds, SumForAll) {
  expect_carried<float>(Kind::allreduce_sum);
  expect_carried<_Float16>(Kind::allreduce_sum);
}

TEST_P(CollectiveKinds, TakeMaximaOfNegativesAndInfinities) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto rank = static_cast<float>(job().rank());
  std::vector<float> values{-5 - rank, -infinity, job().rank() == 0 ? -1e30f : -infinity};
  finish(start(Kind::allreduce_max, values));
  EXPECT_EQ(values, (std::vector<float>{-5, -infinity, -1e30f}));
}

TEST_P(CollectiveKinds, EndInsideProgressWithoutBeingWaitedFor) {
  std::vector<float> gathered = before<float>(Kind::allgather, 500 * ranks());
  std::vector<float> scattered = before<float>(Kind::reduce_scatter_sum, 500 * ranks());
  const Communicator::Ticket gather = start(Kind::allgather, gathered);
  const Communicator::Ticket scatter = start(Kind::reduce_scatter_sum, scattered);
  const auto ended = [&] { return communicator->done(gather) && communicator->done(scatter); };
  for (int calls = 0; calls < 10'000 && !ended(); ++calls) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    communicator->progress();
  }
  EXPECT_TRUE(ended());
  lane.run_all();
  expect_done(Kind::allgather, gathered);
  expect_done(Kind::reduce_scatter_sum, scattered);
}

// As in a training step with a sharded head: waits for the head's collectives while buckets are in flight.
TEST_P(CollectiveKinds, MeetInAnyOrderWithBucketsUnderWay) {
  const std::size_t large = GetParam() == CarriedBy::short_messages ? 100 : 50'000;
  std::vector<float> features(16 * ranks()), maxima(8 * ranks()), sums(16 * ranks()),
      d_features(16 * ranks());
  std::vector<std::int32_t> labels(8 * ranks());
  std::vector<std::vector<float>> buckets(5, std::vector<float>(large));
  for (int iteration = 0; iteration < 4; ++iteration) {
    refill(Kind::allgather, features);
    refill(Kind::allgather, labels);
    refill(Kind::allreduce_max, maxima);
    refill(Kind::allreduce_sum, sums);
    refill(Kind::reduce_scatter_sum, d_features);
    for (std::vector<float>& bucket : buckets) refill(Kind::allreduce_sum, bucket);
    std::vector<Communicator::Ticket> under_way;
    const auto start_bucket = [&] {
      under_way.push_back(start(Kind::allreduce_sum, buckets[under_way.size()]));
      if (job().rank() % 2 == 1) communicator->progress();  // ranks may progress at different rates
    };
    const Communicator::Ticket of_features = start(Kind::allgather, features);
    start_bucket();
    const Communicator::Ticket of_labels = start(Kind::allgather, labels);
    finish(of_labels);
    finish(of_features);
    start_bucket();
    finish(start(Kind::allreduce_max, maxima));
    start_bucket();
    finish(start(Kind::allreduce_sum, sums));
    const Communicator::Ticket of_gradients = start(Kind::reduce_scatter_sum, d_features);
    start_bucket();
    start_bucket();
    finish(of_gradients);
    for (std::size_t i = under_way.size(); i-- > 0;) finish(under_way[i]);
    expect_done(Kind::allgather, features);
    expect_done(Kind::allgather, labels);
    expect_done(Kind::allreduce_max, maxima);
    expect_done(Kind::allreduce_sum, sums);
    expect_done(Kind::reduce_scatter_sum, d_features);
    for (const std::vector<float>& bucket : buckets) expect_done(Kind::allreduce_sum, bucket);
  }
  EXPECT_EQ(lane.allocations, GetParam() == CarriedBy::staging ? 10 : 0);
}

INSTANTIATE_TEST_SUITE_P(Carried, CollectiveKinds,
                         testing::Values(CarriedBy::mpi, CarriedBy::short_messages, CarriedBy::staging),
                         text_of);

}  // namespace
}  // namespace plumb
