// Tuning results on disk: {"format", "environments": {ENVIRONMENT: {PROBLEM: [trial …]}}}, trials as in
// kernels/program/tuning.h, best first, those of our own kernels with "version": kOwnKernelsVersion. The
// cache is a convenience: a bad file costs time, never a run, and is reported in a remark.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kernels/program/tuning.h"

namespace plumb::cuda {

// $XDG_CACHE_HOME/plumbline/tuning.json, or under ~/.cache if that isn't set; empty without a home.
std::filesystem::path tuning_cache_file();

class TuningCache {
 public:
  // `environment`: everything that the order depends on: GPU, libraries, whether summation order is fixed.
  TuningCache(std::filesystem::path file, std::string environment);

  // Null if the problem isn't cached. Lacks trials of our own kernels of another version.
  const std::vector<EngineTrial>* find(const std::string& problem) const;
  // Also writes to disk, merged with entries that other processes have written since. Readers see the old
  // file or the new one.
  void remember(const std::string& problem, const std::vector<EngineTrial>& trials);

  // One sentence each: a file that can't be read or written, or that has only other environments.
  const std::vector<std::string>& remarks() const { return remarks_; }

 private:
  using Problems = std::map<std::string, std::vector<EngineTrial>>;
  std::filesystem::path file_;
  std::string environment_;
  Problems problems_;
  std::vector<std::string> remarks_;
  bool writable_ = true;
};

}  // namespace plumb::cuda
