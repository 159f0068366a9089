#include "kernels/cuda/tuning_cache.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/hash.h"
#include "base/output.h"
#include "base/text.h"
#include "base/whole_file.h"

namespace plumb::cuda {
namespace {

constexpr const char* kFormat = "plumbline.tuning/3";

nlohmann::json trial_json(const EngineTrial& trial) {
  nlohmann::json json = {{"engine", trial.engine}, {"workspace_bytes", trial.workspace_bytes}};
  if (trial.seconds) json["seconds"] = *trial.seconds;
  if (!trial.failure.empty()) json["failure"] = trial.failure;
  return json;
}

// Throws nlohmann::json::exception for any other structure.
EngineTrial trial_of(const nlohmann::json& json) {
  EngineTrial trial{.engine = json.at("engine"),
                    .workspace_bytes = json.at("workspace_bytes"),
                    .seconds = std::nullopt,
                    .failure = json.value("failure", "")};
  if (json.contains("seconds")) trial.seconds = json.at("seconds").get<double>();
  return trial;
}

}  // namespace

std::filesystem::path tuning_cache_folder() {
  const std::filesystem::path name = std::filesystem::path("plumbline") / "tuning";
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return cache / name;  // the specification ignores relative ones
  const char* home = std::getenv("HOME");
  return home && *home ? std::filesystem::path(home) / ".cache" / name : std::filesystem::path();
}

TuningCache::TuningCache(const std::filesystem::path& folder, std::string environment)
    : environment_(std::move(environment)) {
  if (folder.empty()) return;
  file_ = folder / fmt::format("{:016x}.json", fnv1a(environment_));
  std::error_code ignored;
  if (!std::filesystem::exists(file_, ignored)) return;
  try {
    const auto json = nlohmann::json::parse(read_whole_file(file_, {.remedy = "remove it"}));
    if (json.at("format") != kFormat || json.at("environment") != environment_)
      throw std::invalid_argument("another file");
    for (const auto& [problem, trials] : json.at("problems").items())
      for (const nlohmann::json& trial : trials) problems_[problem].push_back(trial_of(trial));
  } catch (const std::exception&) {  // of the file, its structure, or nlohmann's
    problems_.clear();
    remarks_.push_back("tuning cache " + file_.string() +
                       " is damaged or of another version: tuning starts from nothing and writes it anew");
  }
}

const std::vector<EngineTrial>* TuningCache::find(const std::string& problem) const {
  const auto found = problems_.find(problem);
  return found == problems_.end() || found->second.empty() ? nullptr : &found->second;
}

void TuningCache::remember(const std::string& problem, const std::vector<EngineTrial>& trials) {
  problems_[problem] = trials;
  if (file_.empty() || !writable_) return;
  nlohmann::json problems = nlohmann::json::object();
  for (const auto& [name, list] : problems_)
    for (const EngineTrial& trial : list) problems[name].push_back(trial_json(trial));
  const nlohmann::json json = {
      {"format", kFormat}, {"environment", environment_}, {"problems", std::move(problems)}};
  std::error_code error;
  std::filesystem::create_directories(file_.parent_path(), error);
  const std::string why =
      error ? error.message()
            : replace_file(file_, json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  if (why.empty()) return;
  writable_ = false;
  remarks_.push_back("tuning cache " + file_.string() + " can't be written (" + why +
                     "): the next run tunes again");
}

}  // namespace plumb::cuda
