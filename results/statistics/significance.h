// The significance of a few runs: intervals of medians and ratios, and whether two samples differ.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace plumb {

struct Interval {
  double low = 0, high = 0;
  double confidence = 0;  // probability that it covers the true value: 0.984
  static void fields(auto& self, auto&& each) {
    each("low", self.low), each("high", self.high), each("confidence", self.confidence);
  }
};

// How often equal samples may seem unequal: two-sided, the gate's one-sided.
inline constexpr double kSignificance = 0.05;
// Fewer runs on either side are not judged. 3 against 3 are significant, one-sided, only without any overlap.
inline constexpr std::size_t kLeastRuns = 3;
// As many as messages advise for one side: the interval of the median of 5 values covers it in 93.8 %.
inline constexpr std::size_t kEnoughRuns = 5;
// Smaller differences of speed are ignored, unless somebody gives another limit.
inline constexpr double kMinEffect = 0.01;

// Confidence interval of the median, from order statistics, for any distribution: the narrowest pair of
// ranks, equally far from both ends, that reaches `wanted`, else smallest and largest. Those of n values
// cover the median with probability 1 - 2^(1-n): 5 values 93.8 %, 7 values 98.4 % (David & Nagaraja, Order
// Statistics, 3rd ed., 7.1). Nothing for fewer than 2 values.
std::optional<Interval> median_interval(std::span<const double> values, double wanted = 0.98);

// "93.8 %"; "range" where it covers the median too rarely to be relied on, under 90 %: of fewer than 5
// values, whose smallest and largest it has.
std::string confidence_text(const Interval& interval);

struct RankTest {
  double u = 0;            // Mann-Whitney's U of `first`: pairs in which it is larger, equal ones half
  double p_less = 1;       // one-sided: first tends to be smaller
  double p_two_sided = 1;  // twice the smaller of both tails, at most 1
};
// From all orders (up to kMostExactValues on both sides together, with ties too); else by the normal
// approximation, corrected for ties and continuity. Throws Error(internal) for a NaN.
RankTest mann_whitney(std::span<const double> first, std::span<const double> second);

// Up to so many values on both sides together the distribution of U is counted out, above it is taken for
// normal. 50 over 25 is below 2^53, so that every count is exact in a double.
inline constexpr std::size_t kMostExactValues = 50;

// Confidence interval of second / first: ratios of pairs, by the ranks that Mann and Whitney's test leaves
// (Hollander & Wolfe, Nonparametric Statistical Methods, 4.3, with the normal approximation). A nominal 95 %
// is 90 % with 3 values on either side, whose smallest and largest ratios it has. Confidence is 0 where a
// side has fewer than 2 values. Throws Error(bad_data) unless all are above 0.
Interval ratio_interval(std::span<const double> first, std::span<const double> second,
                        double confidence = 0.95);

// The ratio second / first as the median of all second[j] / first[i] (Hodges & Lehmann 1963, of the
// logarithms). For normal values its variance is 1.05 times that of the ratio of means (with 7 values, that
// of the ratio of medians is 1.5 times), and up to two runs in seven may be outliers. NaN where a side is
// empty.
double shift_ratio(std::span<const double> first, std::span<const double> second);

// Standard deviation of the logarithms around each side's own mean, of both sides together: the relative
// spread from run to run. Needs 3 values in all.
double pooled_log_deviation(std::span<const double> first, std::span<const double> second);

// A difference is shown if Mann and Whitney's test has at most `tail` on that side, and its estimate is above
// `least_effect`.
struct ShownWhen {
  enum class Estimate { medians, pairs };  // ratio of medians, or median of the ratios of pairs (shift_ratio)

  double tail = 0.025;
  double least_effect = 0;  // of logarithms
  Estimate estimate = Estimate::medians;
};

// The smallest difference of logarithms that is shown four times in five, of normal values with the given
// spread; infinite if so few runs can show none. Noether's formula (1987) with Student's quantiles: the rank
// test needs pi / 3 times what the t test needs, and the estimate, with a variance of pi / 2 (medians) or
// pi / 3 (pairs) of a difference of means', must be above the least effect four times in five, too.
double smallest_shift(std::size_t first_runs, std::size_t second_runs, double log_deviation,
                      const ShownWhen& shown);

enum class SpeedVerdict { faster, slower, none_shown, too_few };

struct Comparison {
  std::size_t first_runs = 0, second_runs = 0;
  double ratio = 1;  // median(second) / median(first)
  Interval ratio_range;
  RankTest test;
  SpeedVerdict verdict = SpeedVerdict::too_few;  // of second against first
  // The smallest ratio - 1 that these runs, with the spread that they have, would have shown four times in
  // five, were they normal; infinite if so few can show none.
  double smallest_shown = 0;
};

// A difference is called one only if it is significant and above `min_effect`. Throws Error(bad_data) unless
// all figures are finite and above 0.
Comparison compare(std::span<const double> first, std::span<const double> second,
                   double min_effect = kMinEffect);

// "7.3 % faster (95 % interval 6.9 to 7.7 %, p = 0.0006)", "no difference shown;
// these runs would have shown 1.4 %", "no difference above 1 % shown (0.4 % faster, p = 0.0006)" or "2 runs
// are too few to say; measure 5 on either side".
std::string verdict_text(const Comparison& comparison, double min_effect);

}  // namespace plumb
