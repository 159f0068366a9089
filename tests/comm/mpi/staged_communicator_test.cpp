#include "comm/staged_communicator.h"

#include "comm/mpi_communicator.h"
#include "tests/comm/manual_lane.h"
#include "tests/comm/mpi/mpi_test.h"

namespace plumb {
namespace {

class StagedOverMpi : public MpiTest {
 protected:
  StagedOverMpi() { lane.moves_when_asked = true; }
  template <typename T>
  Communicator::Ticket start(std::vector<T>& values) {
    return staged->start({.elements = values.size(), .dtype = sizeof(T) == 2 ? DType::f16 : DType::f32},
                         reinterpret_cast<std::byte*>(values.data()));
  }
  float sum_of_ranks() const { return static_cast<float>(job().size() * (job().size() + 1)) / 2; }
  ManualLane lane;
  std::unique_ptr<Communicator> staged =
      make_staged_communicator(make_mpi_communicator(job()), lane.copies());
};

TEST_F(StagedOverMpi, SumsArriveInDeviceMemoryIterationAfterIteration) {
  std::vector<std::vector<float>> buffers;
  for (int i = 0; i < 12; ++i) buffers.emplace_back(1 + 997 * (i % 5));
  for (int iteration = 0; iteration < 5; ++iteration) {
    for (std::size_t i = 0; i < buffers.size(); ++i)
      buffers[i].assign(buffers[i].size(), static_cast<float>((job().rank() + 1) * static_cast<int>(i + 1)));
    std::vector<Communicator::Ticket> tickets;
    for (std::vector<float>& buffer : buffers) {
      tickets.push_back(start(buffer));
      if (job().rank() % 2 == 1) staged->progress();  // ranks may progress at different rates
    }
    for (Communicator::Ticket ticket : tickets) staged->wait(ticket);
    lane.run_all();
    for (std::size_t i = 0; i < buffers.size(); ++i)
      EXPECT_EQ(buffers[i],
                std::vector<float>(buffers[i].size(), sum_of_ranks() * static_cast<float>(i + 1)));
  }
  EXPECT_EQ(lane.allocations, 12);
}

TEST_F(StagedOverMpi, HalfPrecisionIsCarriedToo) {
  std::vector<_Float16> values(1001, static_cast<_Float16>(job().rank() + 1));
  staged->wait(start(values));
  lane.run_all();
  for (_Float16 value : values) ASSERT_EQ(static_cast<float>(value), sum_of_ranks());
}

TEST_F(StagedOverMpi, WaitsForTheLastOneWithOthersUnderWay) {
  std::vector<std::vector<float>> buffers(6, std::vector<float>(5000, 1.0f));
  std::vector<Communicator::Ticket> tickets;
  for (std::vector<float>& buffer : buffers) tickets.push_back(start(buffer));
  staged->wait(tickets.back());
  for (Communicator::Ticket ticket : tickets) staged->wait(ticket);
  lane.run_all();
  for (const std::vector<float>& buffer : buffers)
    EXPECT_EQ(buffer, std::vector<float>(5000, static_cast<float>(job().size())));
}

}  // namespace
}  // namespace plumb
