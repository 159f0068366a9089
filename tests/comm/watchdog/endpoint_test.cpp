// The side channel among ranks of a job, and against those who don't know its token.
#include "comm/watchdog/endpoint.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace plumb {
namespace {

using namespace std::chrono_literals;

struct Seen {
  std::vector<int> joined, closed;
  std::vector<std::pair<FrameType, std::uint64_t>> received;
};

// An endpoint that notes what happens to it.
class Side {
 public:
  Side(int rank, const Token& token, const StrangerLimits& limits = {})
      : listener_(listen_at("127.0.0.1")), at(listener_.at), endpoint(make(rank, token, limits)) {}

 private:
  Endpoint make(int rank, const Token& token, const StrangerLimits& limits) {
    return Endpoint(rank, 4, token, std::move(listener_),
                    {.joined = [this](int other) { seen.joined.push_back(other); },
                     .received =
                         [this](int, const Frame& frame) {
                           seen.received.emplace_back(frame.type, value_in<std::uint64_t>(frame));
                         },
                     .closed = [this](int other) { seen.closed.push_back(other); }},
                    limits);
  }
  Listener listener_;

 public:
  Seen seen;
  SocketAddress at;
  Endpoint endpoint;
};

// Polls all of them until `reached`; false after half a minute.
template <typename Reached>
bool poll_until(std::initializer_list<Side*> sides, Reached&& reached) {
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (!reached()) {
    for (Side* side : sides) side->endpoint.poll(1ms);
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

// A client that speaks for itself.
class Stranger {
 public:
  explicit Stranger(const SocketAddress& at) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(at.port));
    inet_pton(AF_INET, at.address.c_str(), &to.sin_addr);
    connected_ = ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  bool connected() const { return connected_; }
  void send(std::span<const std::byte> bytes) {
    [[maybe_unused]] const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // Whether the other side has closed; takes in what it sent.
  bool is_closed() {
    char bytes[4096];
    for (;;) {
      const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN)) return true;
      if (got < 0) return false;
      taken.insert(taken.end(), reinterpret_cast<std::byte*>(bytes),
                   reinterpret_cast<std::byte*>(bytes) + got);
    }
  }
  std::vector<std::byte> taken;

 private:
  UniqueFd socket_;
  bool connected_ = false;
};

std::size_t resident_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6));
  return 0;
}

// Rank 1 joins rank 0 and is heard there: what attackers must not prevent.
void expect_rank_1_is_heard(Side& hub, const Token& token) {
  Side rank(1, token);
  rank.endpoint.dial(0, hub.at);
  ASSERT_TRUE(poll_until({&hub, &rank}, [&] { return rank.endpoint.has_joined(0); }));
  rank.endpoint.send(0, FrameType::heartbeat, std::uint64_t{42});
  ASSERT_TRUE(poll_until({&hub, &rank}, [&] { return !hub.seen.received.empty(); }));
  EXPECT_EQ(hub.seen.received.back(), std::pair(FrameType::heartbeat, std::uint64_t{42}));
}

TEST(Endpoint, CarriesFramesBothWaysAndTellsOfTheEnd) {
  const Token token = random_token();
  Side hub(0, token);
  {
    Side rank(1, token);
    rank.endpoint.dial(0, hub.at);
    ASSERT_TRUE(
        poll_until({&hub, &rank}, [&] { return rank.endpoint.has_joined(0) && hub.endpoint.has_joined(1); }));
    EXPECT_FALSE(hub.endpoint.send(2, FrameType::verdict, std::uint64_t{1})) << "no such rank has joined";
    for (std::uint64_t i = 0; i < 50; ++i) {
      rank.endpoint.send(0, FrameType::heartbeat, i);
      hub.endpoint.send(1, FrameType::verdict, i);
    }
    ASSERT_TRUE(poll_until(
        {&hub, &rank}, [&] { return hub.seen.received.size() == 50 && rank.seen.received.size() == 50; }));
    EXPECT_EQ(rank.seen.received.back(), std::pair(FrameType::verdict, std::uint64_t{49}));
    EXPECT_TRUE(hub.seen.closed.empty());
  }
  ASSERT_TRUE(poll_until({&hub}, [&] { return !hub.seen.closed.empty(); }));
  EXPECT_EQ(hub.seen.closed, std::vector<int>{1});
}

TEST(Endpoint, TellsOfARankThatCannotBeReached) {
  Side rank(1, random_token());
  rank.endpoint.dial(0, {"127.0.0.1", 1});
  EXPECT_TRUE(poll_until({&rank}, [&] { return rank.seen.closed == std::vector<int>{0}; }));
  EXPECT_THROW(listen_at("not an address"), std::runtime_error);
}

TEST(EndpointAttack, WithAnotherTokenIsClosedOnBothSides) {
  const Token token = random_token();
  Side hub(0, token), other(1, random_token());
  other.endpoint.dial(0, hub.at);
  EXPECT_TRUE(poll_until({&hub, &other}, [&] { return !other.seen.closed.empty(); }));
  EXPECT_TRUE(hub.seen.joined.empty() && other.seen.joined.empty());
  expect_rank_1_is_heard(hub, token);
}

TEST(EndpointAttack, JunkAndPortScansAreClosed) {
  const Token token = random_token();
  Side hub(0, token);
  std::mt19937_64 random(1);
  for (int i = 0; i < 20; ++i) {
    Stranger stranger(hub.at);
    ASSERT_TRUE(stranger.connected());
    if (i % 2 == 0) continue;  // a scan
    std::vector<std::byte> junk(sizeof(Frame) * 3);
    for (std::byte& one : junk) one = static_cast<std::byte>(random());
    stranger.send(junk);
    EXPECT_TRUE(poll_until({&hub}, [&] { return stranger.is_closed(); }));
  }
  EXPECT_TRUE(hub.seen.joined.empty());
  expect_rank_1_is_heard(hub, token);
}

TEST(EndpointAttack, HalfOpenConnectionsAreClosedInTime) {
  const Token token = random_token();
  Side hub(0, token, {.most = 64, .patience = 200ms});
  Stranger silent(hub.at), slow(hub.at);
  slow.send(std::vector<std::byte>(10));
  EXPECT_TRUE(poll_until({&hub}, [&] { return silent.is_closed() && slow.is_closed(); }));
  EXPECT_EQ(hub.endpoint.connections(), 0u);
  expect_rank_1_is_heard(hub, token);
}

TEST(EndpointAttack, ThousandsOfConnectionsTakeBoundedMemory) {
  constexpr std::size_t kOpenAtOnce = 400;
  const Token token = random_token();
  Side hub(0, token);
  const std::size_t before = resident_kilobytes();
  std::deque<Stranger> strangers;
  for (int i = 0; i < 10'000; ++i) {
    if (strangers.size() == kOpenAtOnce) strangers.pop_front();
    strangers.emplace_back(hub.at);
    ASSERT_TRUE(strangers.back().connected()) << "number " << i;
    hub.endpoint.poll(0ms);
    ASSERT_LE(hub.endpoint.connections(), StrangerLimits().most);
  }
  EXPECT_LT(resident_kilobytes(), before + 16 * 1024);
  expect_rank_1_is_heard(hub, token);
}

// Newer strangers must not push a rank out before its first frame is read.
TEST(EndpointAttack, ARankIsHeardThroughACrowd) {
  const Token token = random_token();
  Side hub(0, token), rank(1, token);
  std::vector<std::unique_ptr<Stranger>> crowd;
  const auto knock = [&](int count) {
    for (int i = 0; i < count; ++i) crowd.push_back(std::make_unique<Stranger>(hub.at));
  };
  knock(200);
  rank.endpoint.dial(0, hub.at);
  knock(200);
  ASSERT_TRUE(poll_until({&hub, &rank}, [&] {
    knock(8);
    return rank.endpoint.has_joined(0) || !rank.seen.closed.empty();
  }));
  EXPECT_TRUE(rank.seen.closed.empty()) << "it was pushed out";
}

// A rank that is stopped, or somebody in its place, reads nothing.
TEST(EndpointAttack, WhoDoesNotReadIsGivenNoMore) {
  const Token token = random_token();
  Side hub(0, token), rank(1, token);
  rank.endpoint.dial(0, hub.at);
  ASSERT_TRUE(poll_until({&hub, &rank}, [&] { return hub.endpoint.has_joined(1); }));
  const std::size_t before = resident_kilobytes();
  int sent = 0;
  while (sent < 1'000'000 && hub.endpoint.send(1, FrameType::heartbeat, std::uint64_t{7})) ++sent;
  EXPECT_LT(sent, 1'000'000) << "everything was taken";
  EXPECT_LT(resident_kilobytes(), before + 16 * 1024);
  ASSERT_TRUE(
      poll_until({&hub, &rank}, [&] { return rank.seen.received.size() == static_cast<std::size_t>(sent); }));
  EXPECT_TRUE(hub.endpoint.send(1, FrameType::heartbeat, std::uint64_t{7}));
}

}  // namespace
}  // namespace plumb
