// Simulated benchmarks: figures from known distributions, the same on every machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace plumb {

// Normal variates, one stream per name.
class SimulatedNoise {
 public:
  explicit SimulatedNoise(std::string_view name) : key_(stream_key(1, name)) {}

  double normal() {
    if (next_ == values_.size()) {
      fill_normal(key_, 0, 1, values_, made_);
      made_ += values_.size();
      next_ = 0;
    }
    return static_cast<double>(values_[next_++]);
  }
  // In (0, 1).
  double uniform() { return 0.5 * std::erfc(-normal() / std::sqrt(2.0)); }

  // Runs of one benchmark: images/s around `center` with a relative spread.
  std::vector<double> figures(std::size_t runs, double center, double spread) {
    std::vector<double> values;
    for (std::size_t i = 0; i < runs; ++i) values.push_back(center * (1 + spread * normal()));
    return values;
  }

 private:
  PhiloxKey key_;
  std::vector<float> values_ = std::vector<float>(4096);
  std::size_t next_ = 4096;
  std::uint64_t made_ = 0;
};

}  // namespace plumb
