#include <algorithm>
#include <optional>
#include <span>

#include "base/text.h"
#include "results/anomalies/flags.h"
#include "results/scaling/slow_ranks.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

using Ranks = std::vector<std::size_t>;

// Ranks that don't stand apart.
Ranks other_ranks(const SlowRanks& slow) {
  return {slow.by_wait.begin() + static_cast<std::ptrdiff_t>(slow.slow_count), slow.by_wait.end()};
}

// Nothing if a rank's value isn't known.
std::optional<double> median_of(const Ranks& which, std::span<const RankRecord> ranks,
                                std::optional<double> RankRecord::*seconds) {
  std::vector<double> values;
  for (const std::size_t rank : which) {
    if (!(ranks[rank].*seconds)) return std::nullopt;
    values.push_back(*(ranks[rank].*seconds));
  }
  return median(values);
}

// "computes 412 ms a step where the median is 301 ms", or waits for data as much, whichever differs more;
// empty for a record that lacks these times.
std::string work_text(const SlowRanks& slow, const Ranks& slow_here, std::span<const RankRecord> ranks) {
  const Ranks others = other_ranks(slow);
  const auto computes = median_of(slow_here, ranks, &RankRecord::compute_seconds);
  const auto usual = median_of(others, ranks, &RankRecord::compute_seconds);
  const auto waits = median_of(slow_here, ranks, &RankRecord::data_wait_seconds);
  const auto usual_wait = median_of(others, ranks, &RankRecord::data_wait_seconds);
  if (!computes || !usual || !waits || !usual_wait) return "";
  const bool one = slow_here.size() == 1, by_data = *waits - *usual_wait > *computes - *usual;
  if (by_data)
    return fmt::format("{} {} a step for data where the median is {}", one ? "waits" : "wait",
                       duration_text(*waits), duration_text(*usual_wait));
  return fmt::format("{} {} a step where the median is {}", one ? "computes" : "compute",
                     duration_text(*computes), duration_text(*usual));
}

const GpuRecord* gpu_of(std::size_t rank, std::span<const GpuRecord> gpus) {
  return find_in(gpus, static_cast<int>(rank), &GpuRecord::rank);
}

// "; rank 3's GPU ran at 1410 MHz (power cap 83 %), the others' at 1980 MHz", of the slowest rank; empty
// where GPUs don't tell.
std::string clock_text(const SlowRanks& slow, const Ranks& slow_here, std::span<const GpuRecord> gpus) {
  const auto is_here = [&](std::size_t rank) { return std::ranges::count(slow_here, rank) > 0; };
  const std::size_t slowest = *std::ranges::find_if(slow.by_wait, is_here);
  std::vector<double> clocks;
  for (const std::size_t rank : other_ranks(slow))
    if (const GpuRecord* gpu = gpu_of(rank, gpus)) clocks.push_back(gpu->sm_clock_mhz.median);
  const GpuRecord* gpu = gpu_of(slowest, gpus);
  if (gpu == nullptr || clocks.empty()) return "";
  const std::string reasons = throttle_reasons_text(*gpu);
  return fmt::format("; rank {}'s GPU ran at {:.0f} MHz{}, the others' at {:.0f} MHz", slowest,
                     gpu->sm_clock_mhz.median, reasons.empty() ? "" : " (" + reasons + ")", median(clocks));
}

}  // namespace

std::vector<Note> slow_rank_flags(const std::vector<RankRecord>& ranks, double step_seconds,
                                  const std::vector<GpuRecord>& gpus) {
  const std::vector<double> waits = rank_waits(ranks);
  if (waits.size() < 2 || !(step_seconds > 0)) return {};
  const SlowRanks slow = slow_ranks(waits, step_seconds);
  std::vector<Note> flags;
  for (const auto& [host, slow_here] : slow_by_host(slow, ranks)) {
    const auto differences =
        mapped(slow_here, [&](std::size_t rank) { return slow.others_wait - waits[rank]; });
    const std::string share = whole_percent(median(differences) / step_seconds);
    const std::string names = ranks_on_host_text(slow_here, host), work = work_text(slow, slow_here, ranks);
    const bool one = slow_here.size() == 1;
    flags.push_back(
        {"slow_rank", work.empty()
                          ? fmt::format("{} {} {} slower than the others", names, one ? "is" : "are", share)
                          : fmt::format("{} {}: the others wait {} of a step for {}{}", names, work, share,
                                        one ? "it" : "them", clock_text(slow, slow_here, gpus))});
  }
  return flags;
}

}  // namespace plumb
