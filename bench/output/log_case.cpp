#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "base/paths.h"
#include "base/text.h"
#include "bench/output/log_writer.h"
#include "results/analysis/configuration.h"
#include "results/record/fields.h"

namespace plumb {

void LogCase::fields(auto& self, auto&& each) {
  each("model", self.model), each("batch_per_device", self.batch_per_device);
  each("precision", self.precision), each("image_size", self.image_size);
  each("data", self.data, Field{.written = true});
  each("head", self.head, Field{.written = !self.head.empty()});
  each("settings", self.settings, Field{.written = !self.settings.empty()});
}

namespace {

constexpr const char* kCaseFile = ".plumbline-case";

std::string case_text(const LogCase& log_case) {
  return fields::written(log_case).dump() + "\n";
}

// Parses a case file; nothing if it isn't one.
std::optional<LogCase> parse_case(const std::string& text) {
  const auto json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.contains("framework")) return std::nullopt;  // of results/peers: not ours
  try {
    LogCase log_case;
    fields::read_all(ObjectReader(json, kCaseFile), log_case);
    return log_case;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// "--bs 16 --fp32 --image-size 224 --threads 2 on synthetic data"
std::string shown(const LogCase& log_case) {
  const std::string source = log_case.data == "batch"    ? "a batch file"
                             : log_case.data == "images" ? "images"
                                                         : log_case.data + " data";
  std::string options = fmt::format("--bs {} --{} --image-size {}", log_case.batch_per_device,
                                    log_case.precision, log_case.image_size);
  for (const std::string& more : {log_case.head, settings_text(log_case.settings)})
    if (!more.empty()) append_part(options, more, " ");
  return fmt::format("{} on {}", options, source);
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

[[noreturn]] void refuse_folder(const Output& log_dir, const std::string& folder, const std::string& holds,
                                const LogCase& log_case) {
  throw cannot_create(log_dir, fmt::format("{} holds {}, this {} run has {}", folder, holds, log_case.model,
                                           shown(log_case)));
}

// Empty if there is none. A link isn't followed.
std::string read_case(const Output& log_dir, const std::string& path) {
  constexpr const char* kRemedy = "remove it or pass another --log-dir";
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno == ENOENT) return "";
  struct stat status {};
  if (!file && errno == ELOOP) throw cannot_create(log_dir, path + " is a link", kRemedy);
  if (!file || ::fstat(file.get(), &status) != 0)
    throw cannot_create(log_dir, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  if (!S_ISREG(status.st_mode)) throw cannot_create(log_dir, path + " is not a regular file", kRemedy);
  std::string text(4096, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(file.get(), text.data(), text.size()))));
  return text;
}

// Whether the folder has this configuration. Throws Error(cannot_create) if it can't become its own.
bool has_case(const Output& log_dir, const std::string& folder, const LogCase& log_case,
              const std::string& own_log) {
  const std::string text = read_case(log_dir, fmt::format("{}/{}", folder, kCaseFile));
  const std::optional<LogCase> found = parse_case(text);
  if (found && case_text(*found) == case_text(log_case)) return true;
  for (const std::string& name : other_logs(folder, own_log)) {
    if (found) refuse_folder(log_dir, folder, found->model + " runs with " + shown(*found), log_case);
    // Without a case file: older ones of ours, and runs that come here next and will find one.
    const bool may_be_ours = name.starts_with(log_case.stem()) || name.ends_with(".part");
    if (!text.empty() || !may_be_ours)
      refuse_folder(log_dir, folder, name + " of another configuration", log_case);
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
  constexpr std::chrono::seconds kPatience{30};
  const auto start = std::chrono::steady_clock::now();
  while (::flock(first.get(), LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
    if (std::chrono::steady_clock::now() - start >= kPatience)
      throw cannot_create(
          log_dir,
          fmt::format("another program has held the lock of {} for {} s", folders.front(), kPatience.count()),
          "end that one (fuser names it) or pass another --log-dir");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::vector<std::string> others = folders;
  std::erase_if(others, [&](const auto& folder) { return has_case(log_dir, folder, log_case, own_log); });
  for (const std::string& folder : others) {
    const std::string why = replace_file(fmt::format("{}/{}", folder, kCaseFile), case_text(log_case));
    if (!why.empty())
      throw cannot_create(log_dir, fmt::format("cannot write {}/{}: {}", folder, kCaseFile, why),
                          "free space or pass another --log-dir");
  }
}

}  // namespace plumb
