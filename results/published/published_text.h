// Published numbers as people and programs read them.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "results/published/published.h"

namespace plumb {

// One row each within 100 columns, under the GPU it was measured on; below them the sources that the rows'
// numbers in brackets name, with the published notes, and what contradicts what.
std::string published_table(std::span<const PublishedResult> results);
// The columns of results/published/published.csv, then `inconsistency`, `gpu` and `classes`.
std::string published_csv(std::span<const PublishedResult> results);
// {"schema": "plumbline.published/1", "results": [...]}
nlohmann::ordered_json published_json(std::span<const PublishedResult> results);
nlohmann::ordered_json published_result_json(const PublishedResult& result);

// "V100-SXM2-16GB, ImageNet, batch 128": what the second sides of the differences are.
std::string other_sides_text(const std::vector<Difference>& differences);

}  // namespace plumb
