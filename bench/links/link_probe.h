// Latency and bandwidth of links between ranks, measured with messages from host memory over MPI.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "comm/job.h"
#include "results/record/links.h"

namespace plumb {

// Two ranks that are measured.
struct RankPair {
  int first = 0, second = 0;
};

// How long a pair is measured.
struct ProbeEffort {
  int round_trips = 40;
  int messages = 5;               // of which the fastest counts; two of a very slow link
  double message_seconds = 0.02;  // messages grow from 1 MiB until they take about as long
};

using PlacePair = std::pair<std::size_t, std::size_t>;  // places are counted from 0

// Every pair of places, in rounds. No place occurs twice in a round: there are places - 1 rounds, or as many
// as places if their number is odd (the circle method of tournaments).
std::vector<std::vector<PlacePair>> pair_rounds(std::size_t places);

// Measures the pairs side by side, both directions of each at once; no rank occurs twice. Returns the links
// in the pairs' order, on every rank of the job, which all call it. The latency is half of the median round
// trip of 8 bytes. The bandwidth comes from the fastest of ProbeEffort::messages; it is 0 if none was timed.
std::vector<Link> probe_pairs(const Job& job, std::span<const RankPair> pairs,
                              const ProbeEffort& effort = {});

// Each of `ring` sends to the next one, the last to the first, all at once. Returns bytes per second of the
// slowest (each one's fastest of five messages). `ring`: at least 2 ranks. Every rank of the job calls it.
double probe_ring(const Job& job, std::span<const int> ring);

}  // namespace plumb
