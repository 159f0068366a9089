// What runs were made with and on, and where that differs.
#include <algorithm>
#include <map>

#include "base/shallow_json.h"
#include "base/text.h"
#include "base/whole_file.h"
#include "results/compare/samples.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr std::size_t kMostValueColumns = 40;
constexpr std::size_t kMostNames = 4, kMostValues = 3;

// Names the job; differs in every run.
constexpr const char* kJobNumber = "SLURM_JOB_ID";

constexpr const char* kUnset = "unset";

// {"a": {"b": 1}, "c": "d"} becomes b 1, c d. Names are unique in env.json except those of other hosts, whose
// values join the first host's.
void add_leaves(const Json& json, Surroundings& texts) {
  for (const auto& [name, value] : json.items()) {
    if (value.is_object()) {
      add_leaves(value, texts);
    } else if (value.is_array()) {
      for (const Json& part : value)
        if (part.is_object()) add_leaves(part, texts);
    } else if (name != kJobNumber) {
      const std::string text =
          printable(value.is_string() ? value.get<std::string>()
                                      : value.dump(-1, ' ', false, Json::error_handler_t::replace));
      const auto same = std::ranges::find(texts, name, &Surroundings::value_type::first);
      if (same == texts.end())
        texts.emplace_back(printable(name), text);
      else if (same->second != text)
        same->second += ", " + text;
    }
  }
}

std::string value_of(const Surroundings& surroundings, const std::string& name) {
  const auto* found = find_in(surroundings, name, &Surroundings::value_type::first);
  return found ? found->second : kUnset;
}

// Every name that a run of the samples has, in the order of the first that has it.
std::vector<std::string> names_in(std::initializer_list<const Sample*> samples) {
  std::vector<std::string> names;
  for (const Sample* sample : samples)
    for (const Measurement& run : sample->runs)
      if (run.surroundings)
        for (const auto& [name, value] : *run.surroundings)
          if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  return names;
}

// Value to the figures of its runs.
std::map<std::string, std::vector<double>> figures_by_value(const Sample& sample, const std::string& name) {
  std::map<std::string, std::vector<double>> groups;
  for (const Measurement& run : sample.runs)
    if (run.surroundings) groups[value_of(*run.surroundings, name)].push_back(run.images_per_second);
  return groups;
}

}  // namespace

std::optional<Surroundings> read_surroundings(const fs::path& run_folder) {
  const fs::path file = run_folder / "env.json";
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return std::nullopt;
  const Json json = parse_shallow_json(read_whole_file(file, {.remedy = "run again or remove the file"}));
  if (!json.is_object() || !json.contains("build")) return std::nullopt;
  Surroundings surroundings;
  add_leaves(json, surroundings);
  for (auto& [name, value] : surroundings) value = shortened(std::move(value), kMostValueColumns);
  return surroundings;
}

std::string mixture_text(const Sample& sample) {
  std::vector<std::string> parts;
  for (const std::string& name : names_in({&sample})) {
    const auto groups = figures_by_value(sample, name);
    if (groups.size() < 2) continue;
    if (groups.size() > kMostValues) {
      parts.push_back(fmt::format("{} has {} values", name, groups.size()));
      continue;
    }
    std::vector<std::string> values;
    for (const auto& [value, figures] : groups)
      values.push_back(parts.empty() ? fmt::format("{} ({}, median {:.2f} images/s)", value,
                                                   counted(figures.size(), "run"), median(figures))
                                     : value);
    parts.push_back(fmt::format("{} {}", name, fmt::join(values, " and ")));
  }
  if (parts.empty()) return "";
  const std::size_t more = parts.size() - std::min(parts.size(), kMostNames);
  parts.resize(parts.size() - more);
  return fmt::format("the {} runs of {} are not alike: {}{}", sample.runs.size(),
                     configuration_text(sample.configuration), fmt::join(parts, "; "),
                     more > 0 ? fmt::format("; and {} more in env.json", more) : "");
}

std::vector<Difference> surrounding_differences(const Sample& first, const Sample& second) {
  std::vector<Difference> found;
  for (const std::string& name : names_in({&first, &second})) {
    const auto a = figures_by_value(first, name), b = figures_by_value(second, name);
    if (a.size() == 1 && b.size() == 1 && a.begin()->first != b.begin()->first)
      found.push_back({name, a.begin()->first, b.begin()->first});
  }
  return found;
}

}  // namespace plumb
