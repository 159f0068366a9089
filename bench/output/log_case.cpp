#include "bench/output/log_case.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "base/paths.h"
#include "base/text.h"
#include "results/analysis/configuration.h"

namespace plumb {
namespace {

constexpr const char *kCaseFile = ".plumbline-case", *kThreads = "threads";

std::string case_text(const LogCase& log_case) {
  nlohmann::ordered_json json = {{"model", log_case.model},
                                 {"batch_per_device", log_case.batch_per_device},
                                 {"precision", log_case.precision},
                                 {"image_size", log_case.image_size},
                                 {"data", log_case.data}};
  if (!log_case.head.empty()) json["head"] = log_case.head;
  if (!log_case.settings.empty()) json["settings"] = log_case.settings;
  return json.dump() + "\n";
}

// Parses a case file; nothing if it isn't one.
std::optional<LogCase> parse_case(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || json.contains("framework")) return std::nullopt;  // of results/peers: not ours
  try {
    return LogCase{.model = json.at("model"),
                   .precision = json.at("precision"),
                   .batch_per_device = json.at("batch_per_device"),
                   .image_size = json.at("image_size"),
                   .data = json.value("data", "synthetic"),
                   .head = json.value("head", ""),
                   .settings = json.value("settings", std::map<std::string, std::string>())};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

// Case files of before settings were kept don't tell the threads: those may be any.
bool is_same_case(LogCase found, const LogCase& wanted) {
  if (found.settings.empty())
    if (const auto threads = wanted.settings.find(kThreads); threads != wanted.settings.end())
      found.settings.insert(*threads);
  return case_text(found) == case_text(wanted);
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

// Names of the folder's logs: finished ones, and those of runs that are under way. What failed runs left
// behind belongs to no configuration.
std::vector<std::string> logs_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const std::filesystem::path& entry : visible_entries(folder, error)) {
    const std::string name = entry.filename();
    if (name.ends_with(".log") || (name.ends_with(".log.part") && is_being_written(entry)))
      names.push_back(name);
  }
  return names;
}

std::string read_all(int fd) {
  std::string text(4096, '\0');
  const ssize_t count = ::pread(fd, text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

[[noreturn]] void refuse_folder(const Output& log_dir, const std::string& folder, const std::string& holds,
                                const LogCase& log_case) {
  throw cannot_create(log_dir, fmt::format("{} holds {}, this {} run has {}", folder, holds, log_case.model,
                                           shown(log_case)));
}

// Opens it for reading and writing. A link isn't followed: what it leads to would be overwritten.
UniqueFd open_case_file(const Output& log_dir, const std::string& path) {
  constexpr const char* kRemedy = "remove it or pass another --log-dir";
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644));
  struct stat status {};
  if (!file && errno == ELOOP) throw cannot_create(log_dir, path + " is a link", kRemedy);
  if (!file || ::fstat(file.get(), &status) != 0)
    throw cannot_create(log_dir, fmt::format("cannot create {}: {}", path, std::strerror(errno)));
  if (!S_ISREG(status.st_mode)) throw cannot_create(log_dir, path + " is not a regular file", kRemedy);
  return file;
}

// Where locks don't exist, exclusive creation of logs still keeps runs apart.
void lock(int fd, const Output& log_dir, const std::string& path, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kBetweenTries{10};
  const auto start = std::chrono::steady_clock::now();
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return;
    if (std::chrono::steady_clock::now() - start >= patience)
      throw cannot_create(log_dir,
                          fmt::format("another program has held the lock of {} for {} s", path,
                                      std::chrono::duration<double>(patience).count()),
                          "end that one (fuser names it) or pass another --log-dir");
    std::this_thread::sleep_for(kBetweenTries);
  }
}

// The folder's configuration is ours, or becomes ours if no log is there. `fd`: the case file, locked.
void settle_case(int fd, const Output& log_dir, const std::string& folder, const LogCase& log_case) {
  const std::vector<std::string> logs = logs_in(folder);
  const std::string wanted = case_text(log_case), text = read_all(fd);
  const std::optional<LogCase> found = parse_case(text);
  if (found && is_same_case(*found, log_case)) return;
  if (!logs.empty() && found)
    refuse_folder(log_dir, folder, found->model + " runs with " + shown(*found), log_case);
  for (const std::string& name : logs)
    if (!name.starts_with(log_case.stem()) || !text.empty())
      refuse_folder(log_dir, folder, name + " of another configuration", log_case);
  if (::ftruncate(fd, 0) != 0 ||
      ::pwrite(fd, wanted.data(), wanted.size(), 0) != static_cast<ssize_t>(wanted.size()))
    throw cannot_create(log_dir,
                        fmt::format("cannot write {}/{}: {}", folder, kCaseFile, std::strerror(errno)),
                        "free space or pass another --log-dir");
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

CaseFolder::CaseFolder(const Output& log_dir, const std::string& path, const LogCase& log_case,
                       std::chrono::milliseconds patience)
    : CaseFolder(path) {
  const std::string name = path + "/" + kCaseFile;
  do {  // again if a program that was refused has removed the file
    folder_.emplace(log_dir, path);
    case_file_ = open_case_file(log_dir, name);
    lock(case_file_.get(), log_dir, name, patience);
  } while (!has_name(case_file_.get(), name));
  is_new_ = read_all(case_file_.get()).empty() && logs_in(path).empty();
  settle_case(case_file_.get(), log_dir, path, log_case);
}

CaseFolder::~CaseFolder() {
  if (is_new_) ::unlink((path_ + "/" + kCaseFile).c_str());
}

}  // namespace plumb
