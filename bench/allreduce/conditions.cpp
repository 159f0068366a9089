#include "bench/allreduce/conditions.h"

#include <algorithm>

#include "base/machine/machine.h"
#include "base/text.h"
#include "base/units.h"
#include "results/record/schema.h"

namespace plumb {
namespace {

constexpr double kSteadyShare = 0.8;  // of the faster of both rings
constexpr double kShareOfRing = 0.4;  // as the probe of runs calls a host slow
constexpr std::int64_t kLeastBytes = std::int64_t{1} << 20;

std::string bandwidth_text(double bytes_per_second) {
  return fmt::format("{:.3f} GB/s", bytes_per_second / kGiga);
}

}  // namespace

std::string load_warning(const Job& job) {
  std::string mine;
  if (job.local_rank() == 0) {
    // The other ranks of this job wait for this one, and waiting takes a CPU.
    const double load = running_processes() - (job.local_size() - 1);
    if (load > kBusyLoadPerCpu * online_cpus())
      mine = fmt::format("{} (load {:.1f} on {})", job.host(), load, counted(online_cpus(), "CPU"));
  }
  std::string busy;
  for (const std::string& host : job.all_gather(mine))
    if (!host.empty()) append_part(busy, host);
  return busy.empty() ? "" : "other programs keep hosts busy, so times may be too long: " + busy;
}

std::optional<double> highest_busbw(std::span<const MeasuredTransfer> results) {
  std::optional<double> highest;
  for (const MeasuredTransfer& one : results)
    if (one.bytes >= kLeastBytes) highest = std::max(highest.value_or(0), one.busbw_bytes_per_second());
  return highest;
}

std::vector<std::string> ring_warnings(const ProbedRing& ring, std::optional<double> busbw) {
  std::vector<std::string> sentences;
  const auto [slower, faster] = std::minmax(ring.before, ring.after);
  if (slower < kSteadyShare * faster)
    sentences.push_back(
        fmt::format("a ring of single messages reached {} before and {} after the collectives: "
                    "something else used links or CPUs; measure again",
                    bandwidth_text(ring.before), bandwidth_text(ring.after)));
  if (busbw && *busbw < kShareOfRing * slower)
    sentences.push_back(
        fmt::format("collectives reached at most {}, and a ring of single messages {}: other "
                    "programs or the sums take the time, not the links",
                    bandwidth_text(*busbw), bandwidth_text(slower)));
  return sentences;
}

double estimated_seconds(const AllreduceOptions& options, std::span<const std::uint64_t> sizes,
                         int world_size, const Link& link) {
  constexpr int kPlaces = 2, kChecks = 1;
  const double factor = bus_factor(name_of(options.collective), world_size);
  double seconds = 0;
  for (const std::uint64_t bytes : sizes)
    seconds += factor * static_cast<double>(bytes) / link.bytes_per_second +
               factor * world_size * link.latency_seconds;
  return seconds * kPlaces * (options.warmup + options.iterations + kChecks);
}

}  // namespace plumb
