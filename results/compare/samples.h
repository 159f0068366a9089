// Measured runs, however they were kept, as samples: the figures of all runs of one configuration.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ranges.h"
#include "results/analysis/analyze.h"
#include "results/analysis/configuration.h"
#include "results/record/schema.h"

namespace plumb {

// What a run was made with and on, beside its configuration: builds, libraries, variables, hosts. Runs that
// differ here are samples of one configuration, and may still have different speeds. Names and values in
// env.json's order: "commit" "1a2b3c4d5e6f", "oneDNN" "2.6.3", "NCCL_ALGO" "Ring", "host" "node1".
using Surroundings = std::vector<std::pair<std::string, std::string>>;

// From the run folder's env.json; nothing if it is missing or says no build. Throws Error(bad_data) if it
// can't be read or is too large.
std::optional<Surroundings> read_surroundings(const fs::path& run_folder);

struct Measurement {
  std::string origin;            // run folder or log, for messages
  double images_per_second = 0;  // over all ranks: ImagesPerSecond::mean, or the format's figure of the log
  std::optional<RunRecord> record;  // of a run folder
  fs::path run_folder;              // with program.json, env.json, …; empty for a log
  std::optional<Surroundings> surroundings;
  std::int64_t started = 0;  // seconds since 1970, by a run folder's name, else by its file's time
};

struct Sample {
  Configuration configuration;
  std::vector<Measurement> runs;  // by origin; equal in configuration, framework and settings

  std::vector<double> figures() const { return mapped(runs, &Measurement::images_per_second); }
  std::vector<std::string> origins() const { return mapped(runs, &Measurement::origin); }
};

struct LoadedSamples {
  std::vector<Sample> samples;     // by model, precision, batch, head, devices
  std::vector<Note> bad;           // failed, unreadable, newer schema, …: left out, each with its reason
  std::vector<std::string> notes;  // which folders below the named ones were read
};

// A path is a run folder (it has a result.json), a result.json, a folder of run folders (`--output` of the
// benches), a sweep's folder, or a folder of logs (LOG_DIR/<N>n<G>g/…), which are read as `plumbline analyze`
// does with `options`; one log; or a folder that has such ones up to two levels below. Samples of equal
// configuration join, a run given twice counts once, and of copies of one run the first. Throws
// Error(bad_data) for the first path that is none of these or in which nothing is usable, Error(usage) for a
// window or format that can't be.
LoadedSamples load_samples(const std::vector<std::string>& paths, const AnalyzeOptions& options = {});

// One sentence if a sample's runs differ in their surroundings: in what, and how fast each group is. Empty if
// they are alike or nothing is known.
std::string mixture_text(const Sample& sample);

// How the second sample's runs differ from the first's, where the runs of each are alike.
std::vector<Difference> surrounding_differences(const Sample& first, const Sample& second);

}  // namespace plumb
