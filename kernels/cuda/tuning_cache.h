// Tuning results on disk, a file per environment: {"format", "environment", "problems": {PROBLEM: [trial
// …]}}, trials as in kernels/program/tuning.h, best first. The cache is a convenience: a bad file costs time,
// never a run, and is reported in a remark.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kernels/program/tuning.h"

namespace plumb::cuda {

// $XDG_CACHE_HOME/plumbline/tuning, or under ~/.cache if that isn't set; empty without a home.
std::filesystem::path tuning_cache_folder();

class TuningCache {
 public:
  // `environment`: everything that the order depends on: GPU, libraries, our kernels' version, whether
  // summation order is fixed. Without a folder nothing is written.
  TuningCache(const std::filesystem::path& folder, std::string environment);

  // Null if the problem isn't cached.
  const std::vector<EngineTrial>* find(const std::string& problem) const;
  // Also writes to disk. Readers see the old file or the new one; of two processes the last one's stays.
  void remember(const std::string& problem, const std::vector<EngineTrial>& trials);

  // One sentence each: a file that can't be read or written.
  const std::vector<std::string>& remarks() const { return remarks_; }
  const std::filesystem::path& file() const { return file_; }

 private:
  using Problems = std::map<std::string, std::vector<EngineTrial>>;
  std::filesystem::path file_;
  std::string environment_;
  Problems problems_;
  std::vector<std::string> remarks_;
  bool writable_ = true;
};

}  // namespace plumb::cuda
