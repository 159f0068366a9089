// Means, medians and roundings that agree with NumPy's and Python's to the last bit, so that figures computed
// here equal those of the analyzers that are written in Python.
#pragma once

#include <span>

namespace plumb {

// NumPy's add.reduce for contiguous doubles: eight partial sums for up to 128 values, halves above that
// (numpy/_core/src/umath/loops_utils.h.src, pairwise sum). The order decides the last bit.
double pairwise_sum(std::span<const double> values);

// np.mean; NaN without values.
double mean(std::span<const double> values);

// np.median: the middle value or the mean of the two in the middle; NaN without values or with a NaN among
// them.
double median(std::span<const double> values);

// Least, middle and largest of several values.
struct ValueRange {
  double min = 0, median = 0, max = 0;
  static void fields(auto& self, auto&& each) {
    each("min", self.min), each("median", self.median), each("max", self.max);
  }
};
// `values` isn't empty.
ValueRange range_of(std::span<const double> values);

// round() of a np.float64: rint(x * 10^decimals) / 10^decimals, so 1358.635 gives 1358.64. decimals: 0 … 22.
double round_numpy(double value, int decimals);

// round() of a Python float: the double nearest to the decimal number nearest to the exact value, so
// 1358.635, which is slightly less in binary, gives 1358.63. decimals: 0 … 22.
double round_decimal(double value, int decimals);

}  // namespace plumb
