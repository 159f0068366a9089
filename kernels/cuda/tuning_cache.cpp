#include "kernels/cuda/tuning_cache.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/output.h"
#include "base/text.h"
#include "base/whole_file.h"
#include "kernels/cuda/vendors/conv.h"

namespace plumb::cuda {
namespace {

constexpr const char* kFormat = "plumbline.tuning/2";

nlohmann::json trial_json(const EngineTrial& trial) {
  nlohmann::json json = {{"engine", trial.engine}, {"workspace_bytes", trial.workspace_bytes}};
  if (trial.seconds) json["seconds"] = *trial.seconds;
  if (!trial.failure.empty()) json["failure"] = trial.failure;
  if (is_own_kernel(trial.engine)) json["version"] = kOwnKernelsVersion;
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

// Kernels of ours that have changed since.
bool is_outdated(const nlohmann::json& trial) {
  return is_own_kernel(trial.at("engine")) && trial.value("version", 0) != kOwnKernelsVersion;
}

// Environments of a cache file, or null if it isn't one.
nlohmann::json read_environments(const std::filesystem::path& file) {
  std::string text;
  try {
    text = read_whole_file(file, {.remedy = "remove it"});
  } catch (const Error&) {
    return {};
  }
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool ours = json.is_object() && json.value("format", nlohmann::json()) == kFormat;
  return ours ? json.value("environments", nlohmann::json()) : nlohmann::json();
}

std::string keys_of(const nlohmann::json& object) {
  std::string keys;
  for (const auto& [key, value] : object.items()) append_part(keys, key, "; ");
  return keys;
}

}  // namespace

std::filesystem::path tuning_cache_file() {
  const std::filesystem::path name = std::filesystem::path("plumbline") / "tuning.json";
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return cache / name;  // the specification ignores relative ones
  const char* home = std::getenv("HOME");
  return home && *home ? std::filesystem::path(home) / ".cache" / name : std::filesystem::path();
}

TuningCache::TuningCache(std::filesystem::path file, std::string environment)
    : file_(std::move(file)), environment_(std::move(environment)) {
  std::error_code ignored;
  if (file_.empty() || !std::filesystem::exists(file_, ignored)) return;
  const nlohmann::json environments = read_environments(file_);
  try {
    if (!environments.is_object()) throw std::invalid_argument("no environments");
    if (!environments.contains(environment_)) {
      if (!environments.empty())
        remarks_.push_back(fmt::format(
            "tuning cache {} knows {} and nothing of {}: tuning starts from nothing and adds to it",
            file_.string(), keys_of(environments), environment_));
      return;
    }
    for (const auto& [problem, trials] : environments.at(environment_).items())
      for (const nlohmann::json& trial : trials)
        if (!is_outdated(trial)) problems_[problem].push_back(trial_of(trial));
  } catch (const std::exception&) {  // of the structure above, or nlohmann's
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
  nlohmann::json environments = read_environments(file_);
  if (!environments.is_object()) environments = nlohmann::json::object();
  nlohmann::json& mine = environments[environment_];
  if (!mine.is_object()) mine = nlohmann::json::object();
  for (const auto& [name, list] : problems_) {
    if (name != problem && mine.contains(name)) continue;
    mine[name] = nlohmann::json::array();
    for (const EngineTrial& trial : list) mine[name].push_back(trial_json(trial));
  }
  const nlohmann::json json = {{"format", kFormat}, {"environments", std::move(environments)}};
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
