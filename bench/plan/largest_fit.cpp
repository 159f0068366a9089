// The largest batch or class count whose plan fits a device's memory, in as few plans as it takes.
#include <algorithm>
#include <numeric>

#include "bench/plan/step_plan.h"
#include "models/model_builder.h"

namespace plumb {

std::int64_t largest_batch(const std::function<double(std::int64_t batch)>& planned_bytes,
                           double memory_bytes) {
  const auto fits = [&](std::int64_t batch) { return planned_bytes(batch) <= memory_bytes; };
  if (!fits(1)) return 0;
  std::int64_t good = 1;
  std::int64_t bad = 2;
  while (bad <= kMaxBatch && fits(bad)) {
    good = bad;
    bad *= 2;
  }
  if (bad > kMaxBatch) return kMaxBatch;
  while (bad - good > 1) {
    const std::int64_t middle = std::midpoint(good, bad);
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

std::int64_t largest_on_a_line(const std::function<double(std::int64_t count)>& planned_bytes,
                               double memory_bytes, const CountRange& range) {
  std::int64_t good = range.least, bad = range.most;
  double good_bytes = planned_bytes(good);
  if (good_bytes > memory_bytes) return 0;
  double bad_bytes = planned_bytes(bad);
  if (bad_bytes <= memory_bytes) return bad;
  for (int guess = 0; bad - good > 1; ++guess) {
    // Guesses where the line meets the limit, one above and below in turn; bisects if that doesn't converge.
    const double share = (memory_bytes - good_bytes) / (bad_bytes - good_bytes);
    const auto met = good + static_cast<std::int64_t>(share * static_cast<double>(bad - good));
    const std::int64_t middle =
        guess < 8 ? std::clamp(met + guess % 2, good + 1, bad - 1) : std::midpoint(good, bad);
    const double bytes = planned_bytes(middle);
    (bytes <= memory_bytes ? good : bad) = middle;
    (bytes <= memory_bytes ? good_bytes : bad_bytes) = bytes;
  }
  return good;
}

}  // namespace plumb
