#include "bench/links/link_probe.h"

#include <mpi.h>

#include <algorithm>
#include <numeric>

#include "base/steady_clock.h"
#include "comm/mpi_check.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr int kRoundTripsBefore = 5;
constexpr int kRingMessages = 5;
constexpr int kMessagesOfSlowLinks = 2;              // at most, as each of them takes longer than all should
constexpr double kLeastGrowth = 2, kMostGrowth = 8;  // of messages, towards their time
constexpr int kLatencyTag = 1, kSizeTag = 2, kMessageTag = 3;
constexpr int kLeastMessage = 1 << 20, kLargestMessage = 1 << 24;
constexpr double kMessageSeconds = 0.02;  // a message's time: long beside latency, short beside patience

// `begins`: this end sends first.
double round_trip_seconds(int partner, bool begins, int round_trips) {
  double bytes = 0;  // eight of them
  const auto send = [&] {
    check(MPI_Send(&bytes, 1, MPI_DOUBLE, partner, kLatencyTag, MPI_COMM_WORLD), "MPI_Send");
  };
  const auto receive = [&] {
    check(MPI_Recv(&bytes, 1, MPI_DOUBLE, partner, kLatencyTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
          "MPI_Recv");
  };
  std::vector<double> seconds;
  for (int i = 0; i < kRoundTripsBefore + round_trips; ++i) {
    const double start = steady_seconds();
    if (begins) send();
    receive();
    if (!begins) send();
    if (i >= kRoundTripsBefore) seconds.push_back(steady_seconds() - start);
  }
  return median(seconds);
}

// Sends to `next` and receives from `previous` at once.
double message_seconds(int next, int previous, std::vector<std::byte>& memory, int bytes) {
  memory.resize(2 * static_cast<std::size_t>(bytes));
  const double start = steady_seconds();
  check(MPI_Sendrecv(memory.data(), bytes, MPI_BYTE, next, kMessageTag, memory.data() + bytes, bytes,
                     MPI_BYTE, previous, kMessageTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
        "MPI_Sendrecv");
  return steady_seconds() - start;
}

int message_bytes_for(double seconds_of_least) {
  const double factor = seconds_of_least > 0 ? kMessageSeconds / seconds_of_least : 1;
  return static_cast<int>(std::clamp(factor, 1.0, double{kLargestMessage} / kLeastMessage) * kLeastMessage);
}

std::vector<double> timed_messages(int next, int previous, std::vector<std::byte>& memory, int bytes,
                                   int count) {
  std::vector<double> seconds;
  for (int i = 0; i < count; ++i) seconds.push_back(message_seconds(next, previous, memory, bytes));
  return seconds;
}

double speed_of(int bytes, double seconds) {
  return seconds > 0 ? bytes / seconds : 0;
}

// Both ends of a pair take the number of the one that begins.
int agreed(int partner, bool begins, int number) {
  if (begins)
    check(MPI_Send(&number, 1, MPI_INT, partner, kSizeTag, MPI_COMM_WORLD), "MPI_Send");
  else
    check(MPI_Recv(&number, 1, MPI_INT, partner, kSizeTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
  return number;
}

// The faster of two messages tells the next size. The first ones make connections and let windows grow; a
// shaped link lets a few hundred kB pass at once.
double bytes_per_second(int partner, bool begins, const ProbeEffort& effort) {
  std::vector<std::byte> memory;
  int bytes = kLeastMessage;
  double seconds = 0;
  while (true) {
    seconds = std::ranges::min(timed_messages(partner, partner, memory, bytes, 2));
    const double growth =
        seconds > 0 ? std::clamp(effort.message_seconds / seconds, kLeastGrowth, kMostGrowth) : kMostGrowth;
    const bool is_long = 2 * seconds >= effort.message_seconds;
    const double wanted = is_long ? bytes : std::min(bytes * growth, double{kLargestMessage});
    const int next = agreed(partner, begins, static_cast<int>(wanted));
    if (next == bytes) break;
    bytes = next;
  }
  const bool is_over = seconds > effort.messages * effort.message_seconds;
  const int count = agreed(partner, begins, is_over ? kMessagesOfSlowLinks : effort.messages);
  return speed_of(bytes, std::ranges::min(timed_messages(partner, partner, memory, bytes, count)));
}

Link probe_pair(int partner, bool begins, const ProbeEffort& effort) {
  const double latency = round_trip_seconds(partner, begins, effort.round_trips) / 2;
  return {.latency_seconds = latency, .bytes_per_second = bytes_per_second(partner, begins, effort)};
}

}  // namespace

std::vector<std::vector<PlacePair>> pair_rounds(std::size_t places) {
  // If the number is odd, one more place is added, and the place that meets it rests for that round.
  std::vector<std::size_t> circle(places + places % 2);
  std::iota(circle.begin(), circle.end(), 0);
  std::vector<std::vector<PlacePair>> rounds;
  for (std::size_t round = 0; round + 1 < circle.size(); ++round) {
    rounds.emplace_back();
    for (std::size_t i = 0; i < circle.size() / 2; ++i) {
      const auto [first, second] = std::minmax(circle[i], circle[circle.size() - 1 - i]);
      if (second < places) rounds.back().emplace_back(first, second);
    }
    std::rotate(circle.begin() + 1, circle.end() - 1, circle.end());
  }
  return rounds;
}

std::vector<Link> probe_pairs(const Job& job, std::span<const RankPair> pairs, const ProbeEffort& effort) {
  std::vector<double> figures(2 * pairs.size(), 0);  // latency and bandwidth, of each pair on its first rank
  job.barrier();
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (job.rank() == pairs[i].first) {
      const Link link = probe_pair(pairs[i].second, true, effort);
      figures[2 * i] = link.latency_seconds;
      figures[2 * i + 1] = link.bytes_per_second;
    }
    if (job.rank() == pairs[i].second) probe_pair(pairs[i].first, false, effort);
  }
  figures = job.sum(figures);
  std::vector<Link> links;
  for (std::size_t i = 0; i < pairs.size(); ++i) links.push_back({figures[2 * i], figures[2 * i + 1]});
  return links;
}

double probe_ring(const Job& job, std::span<const int> ring) {
  const auto here = std::ranges::find(ring, job.rank());
  const bool takes_part = here != ring.end();
  const auto place = static_cast<std::size_t>(here - ring.begin());
  const int next = takes_part ? ring[(place + 1) % ring.size()] : 0;
  const int previous = takes_part ? ring[(place + ring.size() - 1) % ring.size()] : 0;
  std::vector<std::byte> memory;
  std::vector<double> seconds(ring.size(), 0), speeds(ring.size(), 0);  // each place's, on its own rank
  job.barrier();
  for (int i = 0; takes_part && i < 2; ++i)
    seconds[place] = message_seconds(next, previous, memory, kLeastMessage);
  const int bytes = message_bytes_for(std::ranges::max(job.sum(seconds)));
  if (takes_part)
    speeds[place] =
        speed_of(bytes, std::ranges::min(timed_messages(next, previous, memory, bytes, kRingMessages)));
  return std::ranges::min(job.sum(speeds));
}

}  // namespace plumb
