#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/error.h"
#include "comm/communicator.h"
#include "tests/comm/manual_lane.h"

namespace plumb {
namespace {

// Records its input, and doubles it on completion (a world of two equal ranks).
class FakeCarrier : public Communicator {
 public:
  struct Started {
    std::size_t elements = 0;
    std::byte* data = nullptr;
    float first = 0;
  };
  struct Log {
    std::vector<Started> started;
    std::set<Ticket> ended;
    int progress_calls = 0;
    bool broken = false;
    void end(Ticket ticket) {
      auto* values = reinterpret_cast<float*>(started[ticket].data);
      for (std::size_t i = 0; i < started[ticket].elements; ++i) values[i] *= 2;
      ended.insert(ticket);
    }
  };
  explicit FakeCarrier(Log& log) : log_(log) {}
  std::string name() const override { return "fake"; }
  int size() const override { return 2; }
  Ticket start(const Collective& collective, std::byte* data) override {
    log_.started.push_back({collective.elements, data, *reinterpret_cast<float*>(data)});
    return log_.started.size() - 1;
  }
  void progress() override {
    ++log_.progress_calls;
    if (log_.broken) throw Error(ExitCode::peer_lost, "rank 1 is gone");
  }
  bool done(Ticket ticket) const override { return log_.ended.contains(ticket); }
  void wait(Ticket) override { FAIL() << "would keep other collectives from moving on"; }

 private:
  Log& log_;
};

class Staged : public testing::Test {
 protected:
  Communicator::Ticket start(std::vector<float>& values) {
    return staged->start({.elements = values.size(), .dtype = DType::f32},
                         reinterpret_cast<std::byte*>(values.data()));
  }
  ManualLane lane;
  FakeCarrier::Log carrier;
  std::unique_ptr<Communicator> staged =
      make_staged_communicator(std::make_unique<FakeCarrier>(carrier), lane);
};

TEST_F(Staged, IsItsCarrierButForTheCopies) {
  EXPECT_EQ(staged->name(), "fake");
  EXPECT_EQ(staged->size(), 2);
  EXPECT_FALSE(staged->enqueues());
}

TEST_F(Staged, CarriesWhatTheLaneHasCopiedAndIsDoneOnceTheCopyBackIsEnqueued) {
  std::vector<float> values{1, 2, 3};
  const Communicator::Ticket ticket = start(values);
  staged->progress();
  EXPECT_TRUE(carrier.started.empty());
  lane.run_all();
  staged->progress();
  ASSERT_EQ(carrier.started.size(), 1u);
  EXPECT_EQ(carrier.started[0].elements, 3u);
  EXPECT_EQ(carrier.started[0].first, 1.0f);
  EXPECT_NE(carrier.started[0].data, reinterpret_cast<std::byte*>(values.data()));
  EXPECT_FALSE(staged->done(ticket));
  carrier.end(0);
  staged->progress();
  EXPECT_TRUE(staged->done(ticket));
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3}));  // the lane hasn't copied it yet
  lane.run_all();
  EXPECT_EQ(values, (std::vector<float>{2, 4, 6}));
}

TEST_F(Staged, CarriesInTheOrderOfTheStarts) {
  std::vector<std::vector<float>> buffers(5);
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].assign(10 + i, static_cast<float>(i));
  for (std::vector<float>& buffer : buffers) start(buffer);
  for (std::size_t copied = 1; copied <= buffers.size(); ++copied) {
    lane.run(1);
    staged->progress();
    ASSERT_EQ(carrier.started.size(), copied);
    EXPECT_EQ(carrier.started.back().elements, 9 + copied);
  }
}

TEST_F(Staged, MayEndInAnotherOrderThanStarted) {
  std::vector<float> first{1}, second{10};
  const Communicator::Ticket first_ticket = start(first), second_ticket = start(second);
  lane.run_all();
  staged->progress();
  carrier.end(1);
  staged->progress();
  EXPECT_FALSE(staged->done(first_ticket));
  EXPECT_TRUE(staged->done(second_ticket));
  carrier.end(0);
  staged->wait(first_ticket);
  lane.run_all();
  EXPECT_EQ(first[0], 2.0f);
  EXPECT_EQ(second[0], 20.0f);
}

TEST_F(Staged, AllocatesOncePerPlaceWhateverOrderIterationsEndIn) {
  std::vector<std::vector<float>> buffers{{1, 1}, {2}, {3, 3, 3}};
  for (int iteration = 0; iteration < 4; ++iteration) {
    const std::size_t before = carrier.started.size();
    for (std::vector<float>& buffer : buffers) start(buffer);
    lane.run_all();
    staged->progress();
    for (std::size_t i : {iteration % 3, (iteration + 1) % 3, (iteration + 2) % 3}) {
      carrier.end(before + i);
      staged->progress();
    }
    lane.run_all();
    EXPECT_EQ(lane.allocations, 3);
  }
  EXPECT_EQ(buffers, (std::vector<std::vector<float>>{{16, 16}, {32}, {48, 48, 48}}));
}

TEST_F(Staged, NextUseOfAPlaceMayStartBeforeTheCopyBackHasRun) {
  std::vector<float> values{1, 2};
  const Communicator::Ticket first = start(values);
  lane.run_all();
  staged->progress();
  carrier.end(0);
  staged->wait(first);
  start(values);  // after the copy back, on the lane
  lane.run_all();
  staged->progress();
  ASSERT_EQ(carrier.started.size(), 2u);
  EXPECT_EQ(carrier.started[1].first, 2.0f);
  EXPECT_EQ(carrier.started[1].data, carrier.started[0].data);
}

TEST_F(Staged, NothingToReduceIsDoneAtOnce) {
  std::vector<float> values;
  const Communicator::Ticket ticket = start(values);
  EXPECT_TRUE(staged->done(ticket));
  staged->wait(ticket);
  EXPECT_EQ(lane.given_so_far, 0u);
}

TEST_F(Staged, LetsItsCarrierMoveOnWithNothingOfItsOwnUnderWay) {
  staged->progress();
  EXPECT_EQ(carrier.progress_calls, 1);
}

TEST_F(Staged, PassesOnThatAPeerIsLost) {
  std::vector<float> values{1};
  const Communicator::Ticket ticket = start(values);
  carrier.broken = true;
  EXPECT_THROW(staged->wait(ticket), Error);
}

}  // namespace
}  // namespace plumb
