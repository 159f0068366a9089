// The "gpus" of result.json.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "results/record/schema.h"

namespace plumb {
namespace {

std::string throttled_percent(double share) {
  return share < 0.01 ? "under 1 %" : fmt::format("{} %", std::llround(100 * share));
}

}  // namespace

std::optional<double> total_joules(const std::vector<GpuRecord>& gpus, int ranks) {
  if (gpus.empty() || gpus.size() != static_cast<std::size_t>(ranks)) return std::nullopt;
  std::map<std::string, double> joules_by_gpu;
  for (const GpuRecord& gpu : gpus) {
    if (!gpu.joules) return std::nullopt;
    double& joules = joules_by_gpu[gpu.id];  // ranks that share a GPU each see all of it
    joules = std::max(joules, *gpu.joules);
  }
  double total = 0;
  for (const auto& [id, joules] : joules_by_gpu) total += joules;
  return total;
}

std::string clock_reasons_text(const GpuRecord& record) {
  std::string reasons;
  for (const auto& [reason, share] : record.clock_reasons)
    append_part(reasons, fmt::format("{} {}", reason, throttled_percent(share)));
  return reasons;
}

std::string throttling_text(const GpuRecord& record) {
  if (!(record.throttled_share > 0)) return "";
  return fmt::format("rank {}'s GPU was throttled in {} of the window ({}), SM clock {:.0f} to {:.0f}{} MHz",
                     record.rank, throttled_percent(record.throttled_share), clock_reasons_text(record),
                     record.sm_clock_mhz.min, record.sm_clock_mhz.max,
                     record.highest_sm_clock_mhz > 0
                         ? fmt::format(" of {}", std::llround(record.highest_sm_clock_mhz))
                         : "");
}

}  // namespace plumb
