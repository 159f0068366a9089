// What may spoil a measurement of collectives: other programs on the hosts, links that change meanwhile. And
// how long the measurement takes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/allreduce/allreduce_options.h"
#include "bench/allreduce/measured_transfer.h"
#include "comm/job.h"
#include "results/record/fields.h"
#include "results/record/links.h"

namespace plumb {

// A ring of all ranks, each sending to the next, before and after the collectives: bytes per second of its
// slowest link.
struct ProbedRing {
  double before = 0, after = 0;
  static void fields(auto& self, auto&& each) {
    each("before", self.before, Field{"bytes per second of the slowest link, before the collectives"});
    each("after", self.after, Field{"the same after them"});
  }
};

// A sentence that names the hosts on which other programs use half of the CPUs or more; empty without any.
// Every rank calls it; the result is rank 0's.
std::string load_warning(const Job& job);

// The highest bus bandwidth of the results of at least 1 MiB, in bytes per second: latency dominates others.
std::optional<double> highest_busbw(std::span<const MeasuredTransfer> results);

// Sentences about links that changed, and about collectives far slower than the ring. `busbw`:
// highest_busbw().
std::vector<std::string> ring_warnings(const ProbedRing& ring, std::optional<double> busbw);

// Seconds of all collectives of `sizes`, in and out of place, by bus_factor() with one latency per hop.
double estimated_seconds(const AllreduceOptions& options, std::span<const std::uint64_t> sizes,
                         int world_size, const Link& link);

}  // namespace plumb
