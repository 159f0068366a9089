// Which engine was fastest for a problem, kept on disk from run to run: a JSON object of strings, key to
// engine. A cache is a convenience: a file that can't be read, or holds something else, counts as empty, and
// one that can't be written is left alone.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace plumb::cuda {

// $XDG_CACHE_HOME/plumbline/cudnn_engines.json, with ~/.cache where that isn't set; empty where there is no
// home.
std::filesystem::path plan_cache_file();

// What a choice holds for: the GPU's name, the library's version, the problem's text.
std::string plan_cache_key(const std::string& gpu, const std::string& library, const std::string& problem);

class PlanCache {
 public:
  explicit PlanCache(std::filesystem::path file);

  std::optional<std::string> find(const std::string& key) const;
  // Also on disk, beside what other processes have written since. Readers see the old file or the new one.
  void remember(const std::string& key, const std::string& engine);

 private:
  std::filesystem::path file_;
  std::map<std::string, std::string> engines_;
};

}  // namespace plumb::cuda
