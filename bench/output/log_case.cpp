#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/paths.h"
#include "base/text.h"
#include "bench/output/log_writer.h"
#include "results/record/fields.h"

namespace plumb {
namespace {

constexpr const char* kCaseFile = ".plumbline-case";
constexpr std::chrono::seconds kPatience{30};

Json case_json(const LogCase& log_case) {
  Json json{{"model", log_case.model},
            {"batch_per_device", log_case.batch_per_device},
            {"precision", log_case.precision},
            {"image_size", log_case.image_size},
            {"data", log_case.data}};
  if (!log_case.head.empty()) json["head"] = log_case.head;
  if (!log_case.settings.empty()) json["settings"] = log_case.settings;
  return json;
}

bool is_case(const std::string& text, const LogCase& log_case) {
  return nlohmann::json::parse(text, nullptr, false) == nlohmann::json(case_json(log_case));
}

// " (batch_per_device 2, not 3)": what of the case file differs from this run; empty if nothing can be read.
std::string differences(const std::string& text, const LogCase& log_case) {
  const auto theirs = nlohmann::json::parse(text, nullptr, false);
  if (!theirs.is_object()) return "";
  const nlohmann::json ours = case_json(log_case);
  nlohmann::json all = theirs;
  all.update(ours);
  std::string list;
  for (const auto& [key, either] : all.items()) {
    const auto their = theirs.value(key, nlohmann::json()), our = ours.value(key, nlohmann::json());
    if (their != our)
      append_part(list, fmt::format("{} {}, not {}", printable(key), printable(their.dump()), our.dump()),
                  "; ");
  }
  return list.empty() ? "" : fmt::format(" ({})", list);
}

// A run holds the lock of its log (PartialLog) as long as it lives.
bool is_being_written(const std::filesystem::path& part) {
  const UniqueFd file(::open(part.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// Names of the logs in the folder, except `own`, that are finished or being written. Partial logs of failed
// runs don't count.
std::vector<std::string> other_logs(const std::string& folder, const std::string& own) {
  std::vector<std::string> names;
  std::error_code error;
  for (const std::filesystem::path& entry : visible_entries(folder, error)) {
    const std::string name = entry.filename();
    if (name != own && (name.ends_with(".log") || (name.ends_with(".log.part") && is_being_written(entry))))
      names.push_back(name);
  }
  return names;
}

// Empty if there is none.
std::string read_case(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  std::string text(4096, '\0');  // more than any configuration needs
  std::ifstream file(path);
  file.read(text.data(), std::ssize(text));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

// Whether the folder has this configuration. Throws Error(cannot_create) if it can't become its own.
bool has_case(const Output& log_dir, const std::string& folder, const LogCase& log_case,
              const std::string& own_log) {
  const std::string text = read_case(fmt::format("{}/{}", folder, kCaseFile));
  if (is_case(text, log_case)) return true;
  for (const std::string& name : other_logs(folder, own_log)) {
    // Without a case file: older ones of ours, and runs that come here next and will find one.
    const bool may_be_ours = name.starts_with(log_case.stem()) || name.ends_with(".part");
    if (text.empty() && may_be_ours) continue;
    throw cannot_create(log_dir, fmt::format("{} holds {} of another configuration{}", folder, name,
                                             differences(text, log_case)));
  }
  return false;
}

}  // namespace

RunSize LogCase::size() const {
  return {static_cast<double>(batch_per_device) * nodes * devices_per_node, nodes, devices_per_node};
}

std::string LogCase::folder() const {
  return fmt::format("{}n{}g", nodes, devices_per_node);
}

std::string LogCase::stem() const {
  return fmt::format("{}_b{}_{}_", model, batch_per_device, precision);
}

std::string head_options(const nlohmann::ordered_json& config) {
  std::string text;
  const auto add = [&](const char* key) {
    text += fmt::format("{}--{} {}", text.empty() ? "" : " ", replaced(key, '_', "-"),
                        config[key].is_string() ? config[key].get<std::string>() : config[key].dump());
  };
  for (const char* key : {"head", "classes", "embedding", "sample_rate"})
    if (config.contains(key) && !config[key].is_null()) add(key);
  // Most runs have these, and don't say so.
  if (config.value("prelu", "channel") != "channel") add("prelu");
  if (config.value("head_dtype", "fp32") != "fp32" && config.value("precision", "fp32").ends_with("16"))
    add("head_dtype");
  return text;
}

void settle_case(const Output& log_dir, const std::vector<std::string>& folders, const LogCase& log_case,
                 const std::string& own_log) {
  // Where folders can't be locked, two configurations that begin at once may get one folder.
  const UniqueFd first(::open(folders.front().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock_within(first.get(), kPatience) == EWOULDBLOCK)
    throw cannot_create(log_dir, fmt::format("another program holds the lock of {}", folders.front()),
                        "end that program (fuser prints its number) or pass another --log-dir");
  std::vector<std::string> others = folders;
  std::erase_if(others, [&](const auto& folder) { return has_case(log_dir, folder, log_case, own_log); });
  for (const std::string& folder : others) {
    const std::string why =
        replace_file(fmt::format("{}/{}", folder, kCaseFile), case_json(log_case).dump() + "\n");
    if (!why.empty())
      throw cannot_create(log_dir, fmt::format("cannot write {}/{}: {}", folder, kCaseFile, why),
                          "free space or pass another --log-dir");
  }
}

}  // namespace plumb
