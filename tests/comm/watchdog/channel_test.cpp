// Rank 0's connections, also with strangers who do not know the token.
#include "comm/watchdog/channel.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <future>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace plumb {
namespace {

using namespace std::chrono_literals;

constexpr Token kToken = 0x1234567890abcdef;

Verdict heartbeat_at(std::int64_t iteration) {
  return {.last = {.iteration = iteration}};
}

std::future<Channel> channel_of_rank_0(Listener listener, int ranks,
                                       std::chrono::milliseconds patience = 20s) {
  return std::async(std::launch::async, [listener = std::move(listener), ranks, patience] {
    return Channel(listener, ranks, kToken, patience);
  });
}

// False if nothing comes in time.
bool receive(Channel& channel, std::chrono::milliseconds longest, const Channel::Events& events) {
  std::vector<pollfd> polled = channel.polled();
  if (::poll(polled.data(), polled.size(), static_cast<int>(longest.count())) < 1) return false;
  channel.receive(polled, events);
  return true;
}

// The next message, or nothing at the connection's end; the second is the rank.
std::pair<std::optional<Verdict>, int> next(Channel& channel) {
  std::pair<std::optional<Verdict>, int> seen{{}, -1};
  while (seen.second < 0)
    receive(channel, 1s,
            {.received =
                 [&](int rank, const Verdict& message) {
                   seen = {message, rank};
                 },
             .closed = [&](int rank) { seen.second = rank; }});
  return seen;
}

class ConnectedAt : public testing::TestWithParam<std::string> {};

TEST_P(ConnectedAt, RanksHearEachOtherAndSeeAnEnd) {
  Listener listener = listen_at(GetParam());
  const SocketAddress at = listener.at;
  auto pending = channel_of_rank_0(std::move(listener), 3);
  Channel first(at, 1, kToken, 20s);
  std::optional<Channel> second(std::in_place, at, 2, kToken, 20s);
  Channel rank_0 = pending.get();
  EXPECT_TRUE(rank_0.is_connected(1) && rank_0.is_connected(2));
  second->send_to_all(heartbeat_at(17));
  const auto [message, rank] = next(rank_0);
  EXPECT_EQ(rank, 2);
  EXPECT_EQ(message.value().last.iteration, 17);
  rank_0.send_to_all(heartbeat_at(5));
  EXPECT_EQ(next(first).first.value().last.iteration, 5);
  second.reset();
  const auto [none, ended] = next(rank_0);
  EXPECT_FALSE(none);
  EXPECT_EQ(ended, 2);
  EXPECT_FALSE(rank_0.is_connected(2));
  rank_0.send_to_all(heartbeat_at(6));  // not to rank 2
}

INSTANTIATE_TEST_SUITE_P(Watchdog, ConnectedAt, testing::Values("127.0.0.1", "::1"),
                         [](const auto& tested) { return tested.param == "::1" ? "IPv6" : "IPv4"; });

UniqueFd stranger_at(const SocketAddress& at, std::span<const std::byte> says) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(at.port));
  inet_pton(AF_INET, at.address.c_str(), &to.sin_addr);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  EXPECT_EQ(::send(socket.get(), says.data(), says.size(), MSG_NOSIGNAL), static_cast<ssize_t>(says.size()));
  return socket;
}

TEST(Strangers, GetNothingAndKeepNoRankOut) {
  Listener listener = listen_at("127.0.0.1");
  const SocketAddress at = listener.at;
  auto pending = channel_of_rank_0(std::move(listener), 2);
  std::vector<UniqueFd> strangers;
  for (const std::size_t bytes : {0, 1, 15, 16, 5000})  // silent, and junk
    strangers.push_back(stranger_at(at, std::vector<std::byte>(bytes, std::byte{7})));
  const Channel wrong_token(at, 1, kToken + 1, 20s), wrong_rank(at, 2, kToken, 20s);
  Channel rank(at, 1, kToken, 20s);
  Channel rank_0 = pending.get();
  rank.send_to_all(heartbeat_at(42));
  EXPECT_EQ(next(rank_0).first.value().last.iteration, 42);
  for (const UniqueFd& stranger : strangers) {
    char byte = 0;
    EXPECT_LE(::recv(stranger.get(), &byte, 1, 0), 0);
  }
}

TEST(Channel, WaitsNoLongerThanItsPatience) {
  Listener listener = listen_at("127.0.0.1");
  const SocketAddress at = listener.at;
  EXPECT_FALSE(channel_of_rank_0(std::move(listener), 2, 50ms).get().is_connected(1));
  EXPECT_FALSE(Channel(at, 1, kToken, 50ms).is_connected(0));
  EXPECT_THROW(listen_at("n2"), Error);
}

// As one that is stopped: what is queued for it stays small.
TEST(Channel, DropsMessagesOfARankThatDoesNotRead) {
  Listener listener = listen_at("127.0.0.1");
  const SocketAddress at = listener.at;
  auto pending = channel_of_rank_0(std::move(listener), 2);
  Channel rank(at, 1, kToken, 20s);
  Channel rank_0 = pending.get();
  constexpr std::int64_t kSent = 100'000;
  for (std::int64_t i = 0; i < kSent; ++i) rank_0.send_to_all(heartbeat_at(i));
  std::int64_t got = 0, last = -1;
  const Channel::Events counts{.received =
                                   [&](int, const Verdict& message) {
                                     EXPECT_GT(message.last.iteration,
                                               std::exchange(last, message.last.iteration));
                                     ++got;
                                   },
                               .closed = [](int) {}};
  while (receive(rank, 100ms, counts)) {
  }
  EXPECT_GT(got, 10);
  EXPECT_LT(got, kSent);
}

}  // namespace
}  // namespace plumb
