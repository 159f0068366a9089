// Measured allreduces beside allreduces: of bench_allreduce, of another day, of nccl-tests.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "results/record/links.h"

namespace plumb {

// Whether the file is a links.json or an output of nccl-tests. Throws nothing.
bool holds_links(const std::filesystem::path& file);

struct LinkSet {
  std::string name;
  Links links;
};

// An allreduce that both sets have.
struct ComparedAllreduce {
  MeasuredAllreduce first, second;

  // Bytes per second, second over first: of the medians, of first's fastest and second's slowest time, and
  // the other way round.
  ValueRange ratio() const;
  static void fields(auto& self, auto&& each);
};

struct LinkComparison {
  std::string first, second;  // names
  std::vector<ComparedAllreduce> pairs;
  std::size_t only_first = 0, only_second = 0;  // allreduces that the other set hasn't
  static void fields(auto& self, auto&& each);
};

// The first set against each other one; layouts and sizes that both have. Throws Error(bad_data) if there is
// none.
std::vector<LinkComparison> compare_links(std::span<const LinkSet> sets);

// Within 100 columns but for long names.
std::string link_comparison_text(std::span<const LinkSet> sets, std::span<const LinkComparison> comparisons);
Json link_comparison_json(const std::vector<LinkComparison>& comparisons);
extern const Document kLinkComparisonDocument;

}  // namespace plumb
