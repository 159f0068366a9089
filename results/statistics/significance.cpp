#include "results/statistics/significance.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/binomial.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
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

// The rank test of so few runs rejects nothing, even if all of one side are above all of the other.
bool can_show_nothing(std::size_t first_runs, std::size_t second_runs, double tail) {
  const auto all = static_cast<unsigned>(first_runs + second_runs), first = static_cast<unsigned>(first_runs);
  return all <= kMostExactValues && 1 / boost::math::binomial_coefficient<double>(all, first) > tail;
}

void check_figures(std::span<const double> figures) {
  for (const double figure : figures)
    if (!(figure > 0) || !std::isfinite(figure))
      throw Error(ExitCode::bad_data, "a run's figure is {:f}, which is not a throughput; leave that run out",
                  figure);
}

// Logarithms of all second[j] / first[i], the smallest first.
std::vector<double> pair_logarithms(std::span<const double> first, std::span<const double> second) {
  std::vector<double> logarithms;
  for (const double a : first)
    for (const double b : second) logarithms.push_back(std::log(b / a));
  std::ranges::sort(logarithms);
  return logarithms;
}

std::string p_text(const RankTest& test) {
  const double p = test.p_two_sided;
  if (p < 0.0001) return "p < 0.0001";
  return fmt::format("p = {:.{}f}", p, p < 0.001 ? 4 : p < 0.0995 ? 3 : 2);
}

std::string change_text(const Comparison& comparison) {
  const Interval& range = comparison.ratio_range;
  const std::string confidence = given_percent(range.confidence > 0 ? range.confidence : 1 - kSignificance);
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
  if (first.empty() || second.empty()) return test;
  const RankSums ranks = ranks_of(first, second);
  const auto first_count = static_cast<double>(first.size());
  test.u = static_cast<double>(ranks.first_sum) / 2 - first_count * (first_count + 1) / 2;
  const Tails tails = first.size() + second.size() <= kMostExactValues
                          ? exact_tails(ranks, first.size())
                          : normal_tails(test.u, first_count, static_cast<double>(second.size()), ranks.ties);
  test.p_less = tails.less;
  test.p_two_sided = std::min(1.0, 2 * std::min(tails.less, tails.greater));
  return test;
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
  if (can_show_nothing(first_runs, second_runs, shown.tail)) return std::numeric_limits<double>::infinity();
  const auto first = static_cast<double>(first_runs), second = static_cast<double>(second_runs);
  const boost::math::students_t student(first + second - 2);
  const double of_tail = quantile(complement(student, shown.tail)), of_power = quantile(student, kPower);
  const double pi = std::acos(-1.0), error = log_deviation * std::sqrt(1 / first + 1 / second);
  const double estimate_error =
      error * std::sqrt(shown.estimate == ShownWhen::Estimate::pairs ? pi / 3 : pi / 2);
  return std::max((of_tail + of_power) * error * std::sqrt(pi / 3),
                  shown.least_effect + of_power * estimate_error);
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

Interval ratio_interval(std::span<const double> first, std::span<const double> second, double confidence) {
  check_figures(first);
  check_figures(second);
  if (first.size() < 2 || second.size() < 2) {
    const double ratio = median(second) / median(first);
    return {ratio, ratio, 0};
  }
  const std::vector<double> logarithms = pair_logarithms(first, second);
  const auto pairs = static_cast<double>(logarithms.size());
  const double deviation = std::sqrt(pairs * static_cast<double>(first.size() + second.size() + 1) / 12);
  const double rank = pairs / 2 - quantile(boost::math::normal(), (1 + confidence) / 2) * deviation;
  const std::size_t left_out = rank < 1 ? 0 : static_cast<std::size_t>(rank) - 1;
  return {std::exp(logarithms[left_out]), std::exp(logarithms[logarithms.size() - 1 - left_out]), confidence};
}

double shift_ratio(std::span<const double> first, std::span<const double> second) {
  return std::exp(median(pair_logarithms(first, second)));
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
