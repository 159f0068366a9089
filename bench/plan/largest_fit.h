// The largest batch or class count whose plan fits a device's memory, in as few plans as it takes.
#pragma once

#include <cstdint>
#include <functional>

namespace plumb {

// The largest batch whose plan fits into `memory_bytes`, up to kMaxBatch; 0 if batch 1 doesn't.
// `planned_bytes(batch)` describes and plans; it must not fall as the batch grows.
std::int64_t largest_batch(const std::function<double(std::int64_t batch)>& planned_bytes,
                           double memory_bytes);

struct CountRange {
  std::int64_t least = 1, most = 1;
};
// The largest count in the range whose plan fits, 0 if the least doesn't. Makes few plans if planned_bytes is
// nearly a line.
std::int64_t largest_on_a_line(const std::function<double(std::int64_t count)>& planned_bytes,
                               double memory_bytes, const CountRange& range);

}  // namespace plumb
