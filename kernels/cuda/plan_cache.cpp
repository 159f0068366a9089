#include "kernels/cuda/plan_cache.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

namespace plumb::cuda {
namespace {

std::map<std::string, std::string> read_engines(const std::filesystem::path& file) {
  std::map<std::string, std::string> engines;
  std::ifstream stream(file);
  if (!stream) return engines;
  const nlohmann::json json = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return engines;
  for (const auto& [key, engine] : json.items()) {
    if (engine.is_string()) engines.emplace(key, engine.get<std::string>());
  }
  return engines;
}

// Homes are shared between machines: the unfinished file's name must be nobody else's.
void replace_file(const std::filesystem::path& file, const std::string& text) {
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  std::string unfinished = file.string() + ".XXXXXX";
  const int descriptor = mkstemp(unfinished.data());
  if (descriptor < 0) return;
  close(descriptor);
  std::ofstream stream(unfinished, std::ios::trunc);
  stream << text << '\n';
  stream.close();
  if (stream) std::filesystem::rename(unfinished, file, ignored);
  std::filesystem::remove(unfinished, ignored);
}

}  // namespace

std::filesystem::path plan_cache_file() {
  const std::filesystem::path name = std::filesystem::path("plumbline") / "cudnn_engines.json";
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return cache / name;  // the specification ignores relative ones
  const char* home = std::getenv("HOME");
  return home && *home ? std::filesystem::path(home) / ".cache" / name : std::filesystem::path();
}

std::string plan_cache_key(const std::string& gpu, const std::string& library, const std::string& problem) {
  return gpu + ", " + library + ", " + problem;
}

PlanCache::PlanCache(std::filesystem::path file) : file_(std::move(file)), engines_(read_engines(file_)) {}

std::optional<std::string> PlanCache::find(const std::string& key) const {
  const auto found = engines_.find(key);
  return found == engines_.end() ? std::nullopt : std::optional(found->second);
}

void PlanCache::remember(const std::string& key, const std::string& engine) {
  if (!file_.empty()) engines_.merge(read_engines(file_));
  engines_[key] = engine;
  if (!file_.empty())
    replace_file(file_,
                 nlohmann::json(engines_).dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace plumb::cuda
