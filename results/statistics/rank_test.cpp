// Mann and Whitney's test, and the exact distribution of its U.
#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "results/statistics/significance.h"

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

}  // namespace plumb
