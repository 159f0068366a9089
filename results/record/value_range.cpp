#include "results/record/value_range.h"

#include <algorithm>

#include "results/statistics/statistics.h"

namespace plumb {

ValueRange range_of(std::span<const double> values) {
  const auto [low, high] = std::ranges::minmax(values);
  return {low, median(values), high};
}

nlohmann::ordered_json to_json(const ValueRange& range) {
  return {{"min", range.min}, {"median", range.median}, {"max", range.max}};
}

ValueRange read_range(const ObjectReader& reader, const char* key, const std::string& origin,
                      const std::string& prefix) {
  const ObjectReader range(reader.object(key), origin, prefix + "." + key, reader.schema());
  return {range.number("min"), range.number("median"), range.number("max")};
}

}  // namespace plumb
