// Least, middle and largest of several values, as result.json has them: {"min": …, "median": …, "max": …}.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "results/record/object_reader.h"

namespace plumb {

struct ValueRange {
  double min = 0, median = 0, max = 0;
};

// `values` isn't empty.
ValueRange range_of(std::span<const double> values);

nlohmann::ordered_json to_json(const ValueRange& range);
// Member `key` of the object that `reader` reads, which `prefix` names. Throws as ObjectReader does.
ValueRange read_range(const ObjectReader& reader, const char* key, const std::string& origin,
                      const std::string& prefix);

}  // namespace plumb
