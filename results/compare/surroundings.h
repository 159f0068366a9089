// What runs were made with and on, beside their configuration: builds, libraries, variables, hosts. Runs that
// differ here are samples of one configuration, and may still have different speeds.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "results/analysis/configuration.h"

namespace plumb {

struct Sample;

// Names and values in env.json's order: "commit" "1a2b3c4d5e6f", "oneDNN" "2.6.3", "NCCL_ALGO" "Ring",
// "host" "node1".
using Surroundings = std::vector<std::pair<std::string, std::string>>;

// From the run folder's env.json; nothing if it is missing, can't be read or says no build.
std::optional<Surroundings> read_surroundings(const std::filesystem::path& run_folder);

// One sentence if a sample's runs differ in their surroundings: in what, and how fast each group is. Empty if
// they are alike or nothing is known.
std::string mixture_text(const Sample& sample);

// How the second sample's runs differ from the first's, where the runs of each are alike.
std::vector<Difference> surrounding_differences(const Sample& first, const Sample& second);

}  // namespace plumb
