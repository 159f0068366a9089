#include "comm/communicator.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <thread>

#include "tests/comm/mpi/mpi_test.h"

namespace plumb {
namespace {

class MpiCommunicator : public MpiTest {
 protected:
  template <typename T>
  static Collective collective_of(const std::vector<T>& values) {
    return {.elements = values.size(), .dtype = sizeof(T) == 2 ? DType::f16 : DType::f32};
  }
  template <typename T>
  static Communicator::Ticket start(Communicator& communicator, std::vector<T>& values) {
    return communicator.start(collective_of(values), reinterpret_cast<std::byte*>(values.data()));
  }
  // All ranks' bytes equal rank 0's.
  template <typename T>
  static void expect_identical_everywhere(const std::vector<T>& values) {
    const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    for (const std::string& other : job().all_gather(bytes)) EXPECT_TRUE(other == bytes);
  }
  // For numbers that bfloat16 represents exactly.
  static std::uint16_t bf16_bits(float value) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  }
  static std::vector<float> random_values(std::size_t count) {
    std::mt19937 random(static_cast<unsigned>(17 + job().rank()));
    std::normal_distribution<float> normal(0, 0.01f);
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    return values;
  }
};

TEST_F(MpiCommunicator, KnowsItsNameAndSize) {
  const auto communicator = make_mpi_communicator(job());
  EXPECT_EQ(communicator->name(), "mpi");
  EXPECT_EQ(communicator->size(), job().size());
}

TEST_F(MpiCommunicator, SumsAreIdenticalOnAllRanks) {
  const auto communicator = make_mpi_communicator(job());
  for (std::size_t count : {1, 7, 1000, 100'003}) {
    std::vector<float> values = random_values(count);
    std::vector<_Float16> halves(values.begin(), values.end());
    communicator->wait(start(*communicator, values));
    expect_identical_everywhere(values);
    communicator->wait(start(*communicator, halves));
    expect_identical_everywhere(halves);
  }
}

TEST_F(MpiCommunicator, SumsDoNotDependOnWhichRankIsLate) {
  const auto communicator = make_mpi_communicator(job());
  const std::vector<float> mine = random_values(100'003);
  std::vector<std::vector<float>> sums;
  for (int late = 0; late < job().size(); ++late) {
    std::vector<float>& values = sums.emplace_back(mine);
    if (job().rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    communicator->wait(start(*communicator, values));
    EXPECT_EQ(values, sums.front());
  }
}

TEST_F(MpiCommunicator, Bf16SumsAreExactWhereBf16HoldsThemAndIdenticalOnAllRanks) {
  const auto communicator = make_mpi_communicator(job());
  for (std::size_t count : {1u, 7u, 1000u, 100'003u}) {
    // 1, 2, 3 … on each rank: sums up to 128, all exact in bfloat16.
    std::vector<std::uint16_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = bf16_bits(static_cast<float>(i % 32 + 1));
    communicator->wait(communicator->start({.elements = count, .dtype = DType::bf16},
                                           reinterpret_cast<std::byte*>(values.data())));
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(values[i], bf16_bits(static_cast<float>(i % 32 + 1) * static_cast<float>(job().size()))) << i;
    expect_identical_everywhere(values);
  }
}

TEST_F(MpiCommunicator, NotFiniteStaysNotFinite) {
  const auto communicator = make_mpi_communicator(job());
  std::vector<float> values(10, 1.0f);
  if (job().rank() == job().size() - 1) values[3] = std::numeric_limits<float>::quiet_NaN();
  communicator->wait(start(*communicator, values));
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(std::isnan(values[i]), i == 3);
}

TEST_F(MpiCommunicator, SeveralInFlightMayBeWaitedForInAnyOrder) {
  const auto communicator = make_mpi_communicator(job());
  std::vector<std::vector<float>> buffers;
  std::vector<Communicator::Ticket> tickets;
  for (int i = 0; i < 10; ++i) buffers.emplace_back(1000 * (i % 3) + 1, static_cast<float>(i));
  for (std::vector<float>& buffer : buffers) tickets.push_back(start(*communicator, buffer));
  for (std::size_t i : {9, 0, 5, 1, 8, 2, 7, 3, 6, 4}) {
    communicator->wait(tickets[i]);
    EXPECT_TRUE(communicator->done(tickets[i]));
    const float sum = static_cast<float>(i) * static_cast<float>(job().size());
    EXPECT_EQ(buffers[i], std::vector<float>(buffers[i].size(), sum));
  }
}

TEST_F(MpiCommunicator, WaitingTwiceReturnsAtOnce) {
  const auto communicator = make_mpi_communicator(job());
  std::vector<float> values(10, 1.0f);
  const Communicator::Ticket ticket = start(*communicator, values);
  communicator->wait(ticket);
  communicator->wait(ticket);
  communicator->progress();
  EXPECT_EQ(values.front(), static_cast<float>(job().size()));
}

// Also where ranks' blocks differ by an element, and some are empty.
TEST_F(MpiCommunicator, LongBuffersTakeSeveralMessages) {
  const auto communicator = make_mpi_communicator(job(), {.ring_from_bytes = 0, .message_bytes = 400});
  for (std::size_t count : {1u, 3u, 99u, 100u, 101u, 1000u, 1234u, 99'999u}) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
    communicator->wait(start(*communicator, values));
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(values[i], static_cast<float>(i) * static_cast<float>(job().size()));
    }
  }
}

}  // namespace
}  // namespace plumb
