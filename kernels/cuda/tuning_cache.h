// What tuning found, kept on disk from run to run: {"format", "environments": {ENVIRONMENT: {PROBLEM:
// [trial …]}}}, trials as kernels/tuning.h has them, the one to use first. A cache is a convenience: whatever
// is wrong with the file costs time, never a run, and is said in a remark.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kernels/tuning.h"

namespace plumb::cuda {

// $XDG_CACHE_HOME/plumbline/tuning.json, with ~/.cache where that isn't set; empty where there is no home.
std::filesystem::path tuning_cache_file();

class TuningCache {
 public:
  // `environment`: everything that times hold for: GPU, libraries, whether sums keep their order.
  TuningCache(std::filesystem::path file, std::string environment);

  // Null if the problem isn't there.
  const std::vector<EngineTrial>* find(const std::string& problem) const;
  // Also on disk, beside what other processes have written since. Readers see the old file or the new one.
  void remember(const std::string& problem, const std::vector<EngineTrial>& trials);

  // One sentence each: a file that can't be read or written, or that knows other environments only.
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
