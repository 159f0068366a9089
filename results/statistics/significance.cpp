#include "results/statistics/significance.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/units.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

// RankSums of all values, equal ones sharing the mean of theirs; doubled, so that they are whole numbers.
struct RankSums {
  std::vector<std::size_t> doubled;  // in the order of the sorted values
  std::size_t first_sum = 0;         // of the first sample
  double ties = 0;                   // sum of t^3 - t over groups of t equal values
};

RankSums ranks_of(std::span<const double> first, std::span<const double> second) {
  struct Value {
    double value;
    bool is_first;
  };
  std::vector<Value> values;
  for (const double value : first) values.push_back({value, true});
  for (const double value : second) values.push_back({value, false});
  if (std::ranges::any_of(values, [](const Value& value) { return std::isnan(value.value); }))
    throw Error(ExitCode::internal, "a rank test needs numbers");
  std::ranges::sort(values, {}, &Value::value);
  RankSums ranks;
  for (std::size_t begin = 0; begin < values.size();) {
    std::size_t end = begin + 1;
    while (end < values.size() && values[end].value == values[begin].value) ++end;
    const auto equal = static_cast<double>(end - begin);
    ranks.ties += equal * equal * equal - equal;
    const std::size_t rank = begin + 1 + end;  // twice the mean of begin + 1 … end
    for (; begin < end; ++begin) {
      ranks.doubled.push_back(rank);
      if (values[begin].is_first) ranks.first_sum += rank;
    }
  }
  return ranks;
}

// How many of the ways to choose `count` of the ranks have each sum.
std::vector<double> ways_by_sum(const std::vector<std::size_t>& ranks, std::size_t count) {
  std::size_t most = 0;  // the largest ranks are last
  for (std::size_t i = ranks.size() - count; i < ranks.size(); ++i) most += ranks[i];
  std::vector<std::vector<double>> ways(count + 1, std::vector<double>(most + 1, 0.0));
  ways[0][0] = 1;
  for (const std::size_t rank : ranks)
    for (std::size_t chosen = count; chosen > 0; --chosen)
      for (std::size_t sum = most; sum >= rank; --sum) ways[chosen][sum] += ways[chosen - 1][sum - rank];
  return ways[count];
}

struct Tails {
  double less = 1, greater = 1;  // P(U <= u), P(U >= u)
};

Tails exact_tails(const RankSums& ranks, std::size_t first_count) {
  const std::vector<double> ways = ways_by_sum(ranks.doubled, first_count);
  double less = 0, greater = 0, all = 0;
  for (std::size_t sum = 0; sum < ways.size(); ++sum) {
    all += ways[sum];
    if (sum <= ranks.first_sum) less += ways[sum];
    if (sum >= ranks.first_sum) greater += ways[sum];
  }
  return {less / all, greater / all};
}

// Mann and Whitney 1947, section 4; the variance with ties: Lehmann, Nonparametrics, 1975, equation 1.35.
Tails normal_tails(double u, double first_count, double second_count, double ties) {
  const double all = first_count + second_count, pairs = first_count * second_count;
  const double variance = pairs / 12 * (all + 1 - ties / (all * (all - 1)));
  if (!(variance > 0)) return {};
  const boost::math::normal standard;
  const double deviation = std::sqrt(variance), from_mean = u - pairs / 2;
  return {cdf(standard, (from_mean + 0.5) / deviation),
          cdf(complement(standard, (from_mean - 0.5) / deviation))};
}

constexpr double kPower = 0.8;  // four times in five

// The smallest shift of the second of two standard normal samples that one draw would show. U counts the
// pairs whose difference is below the shift, so it reaches `critical` at the critical-th smallest difference.
double shift_shown(std::span<const float> first, std::span<const float> second, std::size_t critical,
                   double deviation, const ShownWhen& shown) {
  std::vector<double> differences;
  differences.reserve(first.size() * second.size());
  for (const float a : first)
    for (const float b : second) differences.push_back(static_cast<double>(a) - static_cast<double>(b));
  const auto at = [&](std::size_t rank) {  // the value that has `rank` values before it
    const auto place = differences.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(differences.begin(), place, differences.end());
    return *place;
  };
  const std::size_t pairs = differences.size();
  const double estimated = shown.estimate == ShownWhen::Estimate::pairs
                               ? (at((pairs - 1) / 2) + at(pairs / 2)) / 2
                               : median(std::vector<double>(first.begin(), first.end())) -
                                     median(std::vector<double>(second.begin(), second.end()));
  const double smallest = at(critical - 1);
  return std::max(smallest * deviation, shown.least_effect + estimated * deviation);
}

// Power of the rank test; pi / 3 is what it needs more than the t test of normal values. The estimate, with a
// variance of pi / 2 (medians) or pi / 3 (pairs) of that of a difference of means, must be above the least
// effect four times in five, too.
double noether_shift(double first_runs, double second_runs, double deviation, const ShownWhen& shown) {
  const boost::math::normal standard;
  const double quantiles = quantile(complement(standard, shown.tail)) + quantile(standard, kPower);
  const double pi = std::acos(-1.0), error = deviation * std::sqrt(1 / first_runs + 1 / second_runs);
  const double estimate_error =
      error * std::sqrt(shown.estimate == ShownWhen::Estimate::pairs ? pi / 3 : pi / 2);
  return std::max(quantiles * error * std::sqrt(pi / 3),
                  shown.least_effect + quantile(standard, kPower) * estimate_error);
}

void check_figures(std::span<const double> figures) {
  for (const double figure : figures)
    if (!(figure > 0) || !std::isfinite(figure))
      throw Error(ExitCode::bad_data, "a run's figure is {:f}, which is not a throughput; leave that run out",
                  figure);
}

// `out` is scratch of values.size(). The generator's remainder favors low indices by less than 2^-50.
double resampled_median(std::span<const double> values, std::mt19937_64& generator,
                        std::vector<double>& out) {
  out.resize(values.size());
  for (double& value : out) value = values[generator() % values.size()];
  const auto middle = out.begin() + static_cast<std::ptrdiff_t>(out.size() / 2);
  std::nth_element(out.begin(), middle, out.end());
  if (out.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(out.begin(), middle)) / 2;
}

std::string p_text(const RankTest& test) {
  const double p = test.p_two_sided;
  if (p < 0.0001) return "p < 0.0001";
  return fmt::format("p = {:.{}f}", p, p < 0.001 ? 4 : p < 0.0995 ? 3 : 2);
}

// Above 2x, print a factor instead of a percentage.
constexpr double kPercentBelow = 2;

std::string change_text(const Comparison& comparison) {
  const Interval& range = comparison.ratio_range;
  const std::string confidence = given_percent(range.confidence > 0 ? range.confidence : 1 - kSignificance);
  if (comparison.ratio >= kPercentBelow)
    return fmt::format("{:.2f} times as fast ({} interval {:.2f} to {:.2f}, {})", comparison.ratio,
                       confidence, range.low, range.high, p_text(comparison.test));
  const bool faster = comparison.ratio > 1;
  const double low = faster ? range.low - 1 : 1 - range.high, high = faster ? range.high - 1 : 1 - range.low;
  return fmt::format("{} % {} ({} interval {} to {} %, {})", percent_text(std::abs(comparison.ratio - 1)),
                     faster ? "faster" : "slower", confidence, percent_text(low), percent_text(high),
                     p_text(comparison.test));
}

std::string none_text(const Comparison& comparison, double min_effect) {
  if (comparison.test.p_two_sided <= kSignificance)
    return fmt::format("no difference above {} shown ({} % {}, {})", given_percent(min_effect),
                       percent_text(std::abs(comparison.ratio - 1)),
                       comparison.ratio > 1 ? "faster" : "slower", p_text(comparison.test));
  if (!std::isfinite(comparison.smallest_shown))
    return fmt::format(
        "no difference shown; {} and {} runs can't show any at a significance of {}; measure {} on either "
        "side",
        comparison.first_runs, comparison.second_runs, given_percent(kSignificance), kEnoughRuns);
  return fmt::format("no difference shown; these runs would have shown {} %",
                     percent_text(comparison.smallest_shown));
}

}  // namespace

RankTest mann_whitney(std::span<const double> first, std::span<const double> second) {
  RankTest test;
  test.exact = first.size() + second.size() <= kMostExactValues;
  if (first.empty() || second.empty()) return test;
  const RankSums ranks = ranks_of(first, second);
  const auto first_count = static_cast<double>(first.size());
  test.u = static_cast<double>(ranks.first_sum) / 2 - first_count * (first_count + 1) / 2;
  const Tails tails = test.exact
                          ? exact_tails(ranks, first.size())
                          : normal_tails(test.u, first_count, static_cast<double>(second.size()), ranks.ties);
  test.p_less = tails.less;
  test.p_two_sided = std::min(1.0, 2 * std::min(tails.less, tails.greater));
  return test;
}

std::optional<std::size_t> critical_u(std::size_t first_count, std::size_t second_count, double tail) {
  if (first_count == 0 || second_count == 0 || first_count + second_count > kMostExactValues)
    return std::nullopt;
  std::vector<std::size_t> ranks(first_count + second_count);
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = i + 1;
  const std::vector<double> ways = ways_by_sum(ranks, first_count);
  double all = 0, above = 0;
  for (const double count : ways) all += count;
  std::optional<std::size_t> smallest;
  for (std::size_t u = first_count * second_count + 1; u-- > 0;) {
    above += ways[u + first_count * (first_count + 1) / 2];
    if (above / all > tail) break;
    smallest = u;
  }
  return smallest;
}

double pooled_log_deviation(std::span<const double> first, std::span<const double> second) {
  double squares = 0;
  for (const auto& side : {first, second}) {
    const auto logarithms = mapped(side, [](double value) { return std::log(value); });
    const double level = mean(logarithms);
    for (const double logarithm : logarithms) squares += (logarithm - level) * (logarithm - level);
  }
  return std::sqrt(squares / static_cast<double>(first.size() + second.size() - 2));
}

double smallest_shift(std::size_t first_runs, std::size_t second_runs, double log_deviation,
                      const ShownWhen& shown) {
  if (first_runs + second_runs > kMostExactValues)
    return noether_shift(static_cast<double>(first_runs), static_cast<double>(second_runs), log_deviation,
                         shown);
  const auto critical = critical_u(first_runs, second_runs, shown.tail);
  if (!critical) return std::numeric_limits<double>::infinity();
  constexpr std::size_t kDraws = 1000;
  const PhiloxKey key = stream_key(1, "smallest shift");
  std::vector<float> draw(first_runs + second_runs);
  std::vector<double> shifts;
  for (std::size_t i = 0; i < kDraws; ++i) {
    fill_normal(key, 0, 1, draw, i * draw.size());
    const std::span<const float> values(draw);
    shifts.push_back(
        shift_shown(values.first(first_runs), values.subspan(first_runs), *critical, log_deviation, shown));
  }
  const auto at_power = shifts.begin() + static_cast<std::ptrdiff_t>(kPower * kDraws);
  std::nth_element(shifts.begin(), at_power, shifts.end());
  return *at_power;
}

std::optional<Interval> median_interval(std::span<const double> values, double wanted) {
  if (values.size() < 2) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  // P(fewer than k of n values lie below the median) = P(B < k), B binomial (n, 1/2).
  const boost::math::binomial below(static_cast<double>(sorted.size()), 0.5);
  const auto coverage = [&](std::size_t left_out) {
    return 1 - 2 * cdf(below, static_cast<double>(left_out));
  };
  std::size_t left_out = 0, too_many = (sorted.size() + 1) / 2;  // of either end
  while (left_out + 1 < too_many) {
    const std::size_t middle = (left_out + too_many) / 2;
    (coverage(middle) >= wanted ? left_out : too_many) = middle;
  }
  return Interval{sorted[left_out], sorted[sorted.size() - 1 - left_out], coverage(left_out)};
}

Interval ratio_interval(std::span<const double> first, std::span<const double> second, double confidence,
                        int resamples, std::uint64_t seed) {
  check_figures(first);
  check_figures(second);
  if (first.size() < 2 || second.size() < 2 || resamples < 1) {
    const double ratio = median(second) / median(first);
    return {ratio, ratio, 0};
  }
  std::mt19937_64 generator(seed);
  std::vector<double> scratch, ratios(static_cast<std::size_t>(resamples));
  for (double& ratio : ratios) {
    const double below = resampled_median(first, generator, scratch);
    ratio = resampled_median(second, generator, scratch) / below;
  }
  std::sort(ratios.begin(), ratios.end());
  const auto at = [&](double share) {
    return ratios[static_cast<std::size_t>(std::lround(share * static_cast<double>(ratios.size() - 1)))];
  };
  return {at((1 - confidence) / 2), at((1 + confidence) / 2), confidence};
}

double shift_ratio(std::span<const double> first, std::span<const double> second) {
  std::vector<double> logarithms;
  for (const double a : first)
    for (const double b : second) logarithms.push_back(std::log(b / a));
  return std::exp(median(logarithms));
}

Comparison compare(std::span<const double> first, std::span<const double> second, double min_effect) {
  Comparison comparison{first.size(), second.size(), median(second) / median(first)};
  comparison.ratio_range = ratio_interval(first, second, 1 - kSignificance);
  comparison.test = mann_whitney(first, second);
  comparison.smallest_shown = std::numeric_limits<double>::infinity();
  if (std::min(first.size(), second.size()) < kLeastRuns) return comparison;
  const double shift = smallest_shift(first.size(), second.size(), pooled_log_deviation(first, second),
                                      {kSignificance / 2, std::log1p(min_effect)});
  comparison.smallest_shown = std::expm1(shift);
  const bool significant = comparison.test.p_two_sided <= kSignificance;
  const bool large = std::abs(comparison.ratio - 1) > min_effect;
  comparison.verdict = !significant || !large ? SpeedVerdict::none_shown
                       : comparison.ratio > 1 ? SpeedVerdict::faster
                                              : SpeedVerdict::slower;
  return comparison;
}

std::string confidence_text(const Interval& interval) {
  constexpr double kLeastConfidence = 0.9;
  return interval.confidence < kLeastConfidence ? "range"
                                                : fmt::format("{:.1f} %", 100 * interval.confidence);
}

std::string verdict_text(const Comparison& comparison, double min_effect) {
  if (comparison.verdict == SpeedVerdict::none_shown) return none_text(comparison, min_effect);
  if (comparison.verdict != SpeedVerdict::too_few) return change_text(comparison);
  const std::size_t runs = std::min(comparison.first_runs, comparison.second_runs);
  return fmt::format("{} {} too few to say; measure {} on either side", counted(runs, "run"),
                     runs == 1 ? "is" : "are", kEnoughRuns);
}

}  // namespace plumb
