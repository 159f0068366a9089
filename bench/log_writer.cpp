#include "bench/log_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "models/error.h"

namespace plumb {
namespace {

constexpr const char* kCaseFile = ".plumbline-case";
constexpr int kMostRuns = 1'000'000;

Error cannot_create(const std::string& path, const std::string& why) {
  return {ExitCode::cannot_create, "log " + path + " can't be created: " + why};
}

std::string stem_of(const LogCase& log_case) {
  return log_case.model + "_b" + std::to_string(log_case.batch_per_device) + "_" + log_case.precision + "_";
}

std::string case_text(const LogCase& log_case) {
  const nlohmann::ordered_json json = {{"model", log_case.model},
                                       {"batch_per_device", log_case.batch_per_device},
                                       {"precision", log_case.precision},
                                       {"image_size", log_case.image_size},
                                       {"data", log_case.data}};
  return json.dump() + "\n";
}

// What a case file says; nothing if it isn't one.
std::optional<LogCase> parse_case(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
    return LogCase{.model = json.at("model"),
                   .precision = json.at("precision"),
                   .batch_per_device = json.at("batch_per_device"),
                   .image_size = json.at("image_size"),
                   .data = json.value("data", "synthetic")};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

// "--bs 16 --fp32 --image-size 224 on synthetic data"
std::string shown(const LogCase& log_case) {
  const std::string source = log_case.data == "batch"    ? "a batch file"
                             : log_case.data == "images" ? "images"
                                                         : log_case.data + " data";
  return "--bs " + std::to_string(log_case.batch_per_device) + " --" + log_case.precision + " --image-size " +
         std::to_string(log_case.image_size) + " on " + source;
}

// Names of all logs of the folder, finished and unfinished.
std::vector<std::string> logs_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".log") || name.ends_with(".log.part")) names.push_back(name);
  }
  return names;
}

std::string read_all(int fd) {
  std::string text(4096, '\0');
  const ssize_t count = ::pread(fd, text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

[[noreturn]] void refuse_folder(const std::string& folder, const std::string& holds,
                                const LogCase& log_case) {
  throw Error(ExitCode::cannot_create, "option --log-dir: " + folder + " holds " + holds + ", this " +
                                           log_case.model + " run has " + shown(log_case) +
                                           "; name another --log-dir");
}

// The folder's configuration is ours, or becomes ours if no log is there. `fd`: the case file, locked.
void settle_case(int fd, const std::string& folder, const LogCase& log_case) {
  const std::vector<std::string> logs = logs_in(folder);
  const std::string wanted = case_text(log_case), text = read_all(fd);
  const std::optional<LogCase> found = parse_case(text);
  if (found && case_text(*found) == wanted) return;
  if (!logs.empty() && found) refuse_folder(folder, found->model + " runs with " + shown(*found), log_case);
  for (const std::string& name : logs)
    if (!name.starts_with(stem_of(log_case)) || !text.empty())
      refuse_folder(folder, name + " of another configuration", log_case);
  if (::ftruncate(fd, 0) != 0 ||
      ::pwrite(fd, wanted.data(), wanted.size(), 0) != static_cast<ssize_t>(wanted.size()))
    throw cannot_create(folder + "/" + kCaseFile,
                        std::string(std::strerror(errno)) + "; free space or give another --log-dir");
}

// 0, or what went wrong. Never replaces a file.
int rename_without_replacing(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // File systems without it: a second name, which fails if that is taken, then the first one goes.
  if (::link(from.c_str(), to.c_str()) != 0) return errno;
  return ::unlink(from.c_str()) == 0 ? 0 : errno;
}

}  // namespace

std::string LogCase::folder() const {
  return std::to_string(nodes) + "n" + std::to_string(devices_per_node) + "g";
}

std::string format_log_line(const LogLine& line, std::int64_t images_per_step,
                            std::chrono::system_clock::time_point start_wall_time) {
  using namespace std::chrono;
  const std::time_t start = system_clock::to_time_t(start_wall_time);
  std::tm local{};
  localtime_r(&start, &local);
  const auto stamp = start_wall_time + round<system_clock::duration>(duration<double>(line.end_seconds)) +
                     seconds(local.tm_gmtoff);
  const auto stamp_ms = floor<milliseconds>(stamp);
  const std::time_t whole = system_clock::to_time_t(floor<seconds>(stamp_ms));
  std::tm parts{};
  gmtime_r(&whole, &parts);
  char date[32], text[512];
  std::strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &parts);
  const int milli = static_cast<int>((stamp_ms - floor<seconds>(stamp_ms)).count());
  const int length = std::snprintf(
      text, sizeof text,
      "%s,%03d-INFO: [Pass 0, train batch %lld] \tloss %.5f, acc1 %.5f, acc5 %.5f, lr %.5f, elapse %.6f sec "
      "Epoch[0] Batch[%lld]\tSpeed: %.2f samples/sec\n",
      date, milli, static_cast<long long>(line.iteration), line.loss, line.top1, line.top5,
      line.learning_rate, line.seconds, static_cast<long long>(line.iteration + 1),
      static_cast<double>(images_per_step) / line.seconds);
  return {text, std::min(static_cast<std::size_t>(length), sizeof text - 1)};
}

LogWriter::LogWriter(const std::string& log_dir, const LogCase& log_case, std::optional<int> run)
    : case_(log_case), folder_(log_dir + "/" + log_case.folder()) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (!std::filesystem::is_directory(folder_))
    throw Error(ExitCode::cannot_create, "option --log-dir: folder " + folder_ + " can't be created: " +
                                             (error ? error.message() : std::strerror(ENOTDIR)) +
                                             "; give another --log-dir");
  claim(run);
}

void LogWriter::claim(std::optional<int> run) {
  const std::string case_path = folder_ + "/" + kCaseFile;
  const UniqueFd lock(::open(case_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock) throw cannot_create(case_path, std::string(std::strerror(errno)) + "; give another --log-dir");
  // Where locks don't exist, exclusive creation still keeps runs apart.
  while (::flock(lock.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  settle_case(lock.get(), folder_, case_);
  if (run) {
    if (try_create(*run)) return;
    throw cannot_create(
        path_, "run " + std::to_string(*run) + " exists already, finished or not; give another --run");
  }
  for (int next = 1; next <= kMostRuns; ++next)
    if (try_create(next)) return;
  throw cannot_create(path_, "all run numbers are taken; give another --log-dir");
}

bool LogWriter::try_create(int run) {
  run_ = run;
  path_ = folder_ + "/" + stem_of(case_) + std::to_string(run) + ".log";
  if (::access(path_.c_str(), F_OK) == 0) return false;
  UniqueFd file(::open(part_path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
  if (!file) {
    if (errno == EEXIST) return false;
    throw cannot_create(part_path(), std::string(std::strerror(errno)) + "; give another --log-dir");
  }
  // Another run may have finished between the two calls, and so have freed the unfinished name.
  if (::access(path_.c_str(), F_OK) == 0) {
    ::unlink(part_path().c_str());
    return false;
  }
  file_ = std::move(file);
  return true;
}

LogWriter::~LogWriter() {
  if (file_ && !finished_ && written_bytes_ == 0) ::unlink(part_path().c_str());
}

void LogWriter::write(const LogLine& line, std::chrono::system_clock::time_point start_wall_time) {
  const std::string text = format_log_line(line, case_.images_per_step(), start_wall_time);
  ssize_t count = 0;
  do {
    count = ::write(file_.get(), text.data(), text.size());
  } while (count < 0 && errno == EINTR);
  if (count == static_cast<ssize_t>(text.size())) {
    written_bytes_ += count;
    return;
  }
  const std::string why = count < 0 ? std::strerror(errno) : "no space for a whole line";
  failed_ = true;
  // A part of a line goes, so that what is left parses; where even that fails, the run has failed all the
  // same.
  const bool cut = count <= 0 || ::ftruncate(file_.get(), written_bytes_) == 0;
  throw Error(ExitCode::io_error, "log " + part_path() + " can't be written at iteration " +
                                      std::to_string(line.iteration) + ": " + why +
                                      (cut ? "" : ", its last line is torn") +
                                      "; free space or give another --log-dir");
}

void LogWriter::finish() {
  if (failed_) throw Error(ExitCode::io_error, "log " + part_path() + " is incomplete and stays unfinished");
  if (::fsync(file_.get()) != 0)
    throw Error(ExitCode::io_error, "log " + part_path() + " can't be saved: " + std::strerror(errno));
  if (const int error = rename_without_replacing(part_path(), path_); error != 0)
    throw Error(error == EEXIST ? ExitCode::cannot_create : ExitCode::io_error,
                "log " + part_path() + " can't be renamed to " + path_ + ": " + std::strerror(error));
  finished_ = true;
  const UniqueFd folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder) ::fsync(folder.get());
}

}  // namespace plumb
