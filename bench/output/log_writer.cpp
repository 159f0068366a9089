#include "bench/output/log_writer.h"

#include <fcntl.h>
#include <spdlog/fmt/chrono.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"

namespace plumb {
namespace {

using std::chrono::system_clock;

constexpr int kMostRuns = 1'000'000;

// A wall clock's reading, `seconds_later` after the start.
struct WallClock {
  std::string stamp, fine_stamp;  // local time: "2025-01-02 23:59:53,657", "2025-01-02 23:59:53.657123"
  double unix_seconds = 0;
};

WallClock wall_clock(system_clock::time_point start_wall_time, double seconds_later) {
  using namespace std::chrono;
  const std::time_t start = system_clock::to_time_t(start_wall_time);
  std::tm local{};
  localtime_r(&start, &local);
  const auto now = start_wall_time + round<system_clock::duration>(duration<double>(seconds_later));
  const auto stamp_us = floor<microseconds>(now + seconds(local.tm_gmtoff));
  const std::time_t whole = system_clock::to_time_t(floor<seconds>(stamp_us));
  const std::string date = fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(whole));
  const auto micro = (stamp_us - floor<seconds>(stamp_us)).count();
  return {fmt::format("{},{:03}", date, micro / 1000), fmt::format("{}.{:06}", date, micro),
          duration<double>(now.time_since_epoch()).count()};
}

// A link that leads nowhere has the name, too.
bool is_taken(const std::string& path) {
  struct stat ignored {};
  return ::lstat(path.c_str(), &ignored) == 0;
}

}  // namespace

std::optional<PartialLog> PartialLog::create(const Output& log_dir, const std::string& path) {
  const std::string part = path + ".part";
  if (is_taken(path)) return std::nullopt;
  UniqueFd file(::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
  if (!file) {
    if (errno == EEXIST) return std::nullopt;
    throw cannot_create(log_dir, fmt::format("cannot create {}: {}", part, std::strerror(errno)));
  }
  ::flock(file.get(), LOCK_EX | LOCK_NB);  // until it is closed: log_case.cpp sees that this run lives
  // Another run may have finished between the two calls, and so have freed the unfinished name.
  if (is_taken(path)) {
    ::unlink(part.c_str());
    return std::nullopt;
  }
  return PartialLog(path, std::move(file));
}

PartialLog::~PartialLog() {
  if (file_ && !published_ && is_empty() && has_name(file_.get(), part_path())) ::unlink(part_path().c_str());
}

void PartialLog::write(const std::string& text, std::int64_t iteration) {
  ssize_t count = 0;
  do {
    count = ::write(file_.get(), text.data(), text.size());
  } while (count < 0 && errno == EINTR);
  if (count == static_cast<ssize_t>(text.size())) {
    written_bytes_ += count;
    return require_its_name();
  }
  const std::string why = count < 0 ? std::strerror(errno) : "no space for a whole line";
  failed_ = true;
  // Cut off a partial line, so that the rest of the log parses. The run has failed even if this fails too.
  const bool cut = count <= 0 || ::ftruncate(file_.get(), written_bytes_) == 0;
  throw Error(ExitCode::io_error,
              "cannot write log {} at iteration {}: {}{}; make room or pass another --log-dir", part_path(),
              iteration, why, cut ? "" : ", and its last line is torn");
}

// Another run's unfinished log may have the name.
void PartialLog::require_its_name() const {
  if (has_name(file_.get(), part_path())) return;
  throw Error(ExitCode::io_error,
              "log {} was removed, moved or replaced during the run; leave a run's logs alone", part_path());
}

void PartialLog::save() {
  if (failed_) throw Error(ExitCode::io_error, "log {} is incomplete and stays unfinished", part_path());
  if (::fsync(file_.get()) != 0)
    throw Error(ExitCode::io_error, "cannot save log {}: {}", part_path(), std::strerror(errno));
}

void PartialLog::publish() {
  require_its_name();
  if (const int error = rename_new(part_path(), path_); error != 0)
    throw Error(error == EEXIST ? ExitCode::cannot_create : ExitCode::io_error,
                "cannot rename log {} to {}: {}", part_path(), path_, std::strerror(error));
  published_ = true;
  const std::string folder = std::filesystem::path(path_).parent_path();
  const UniqueFd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory) ::fsync(directory.get());
}

void PartialLog::withdraw() noexcept {
  if (published_ && rename_new(path_, part_path()) == 0) published_ = false;
}

std::vector<std::string> written_formats() {
  std::vector<std::string> names;
  for (const LogFormat* format : log_formats())
    if (format->written_step > 0) names.emplace_back(format->name);
  return names;
}

std::vector<const LogFormat*> formats_to_write(const std::string& names, std::int64_t iterations) {
  if (names.empty()) return {};
  const std::vector<std::string> wanted = split(names, ',');
  for (const std::string& name : wanted)
    if (const LogFormat* format = find_log_format(name); !format || format->written_step == 0)
      throw Error(ExitCode::usage, "--log-format {}: expected formats that can be written; pass some of {}",
                  name, fmt::join(written_formats(), ", "));
  std::vector<const LogFormat*> chosen;
  for (const LogFormat* format : log_formats()) {
    if (format->is_own_layout || std::ranges::find(wanted, format->name) == wanted.end()) continue;
    const std::int64_t least = format->first_written + format->written_step;
    if (iterations > 0 && iterations < least)
      throw Error(ExitCode::usage, "--iters {} is too few for a line of --log-format {}; pass at least {}",
                  iterations, format->name, least);
    chosen.push_back(format);
  }
  return chosen;
}

LogWriter::LogWriter(const std::string& log_dir, const LogCase& log_case, std::optional<int> run,
                     const std::vector<const LogFormat*>& further)
    : case_(log_case) {
  std::vector<const LogFormat*> formats{log_formats().front()};
  formats.insert(formats.end(), further.begin(), further.end());
  const Output output{.option = "--log-dir", .path = log_dir};
  std::vector<OutputFolder> made;
  std::vector<std::string> folders;
  for (const LogFormat* format : formats) {
    const std::string below = format->is_own_layout ? "" : fmt::format("{}/", format->name);
    folders.push_back(fmt::format("{}/{}{}", log_dir, below, case_.folder()));
    made.emplace_back(output, folders.back());
  }
  const int last = run.value_or(kMostRuns);
  std::string name;
  std::vector<Log> logs;  // declared after the folders, so destroyed before them
  for (run_ = run.value_or(1); run_ <= last && logs.empty(); ++run_) {
    name = fmt::format("{}{}.log", case_.stem(), run_);
    for (std::size_t i = 0; i < folders.size(); ++i) {
      std::optional<PartialLog> file = PartialLog::create(output, folders[i] + "/" + name);
      if (!file) break;
      logs.push_back({formats[i], std::move(*file)});
    }
    if (logs.size() < folders.size()) logs.clear();
  }
  --run_;
  if (logs.empty()) {
    const std::string path = fmt::format("{}/{}", folders.front(), name);
    if (!run) throw cannot_create(output, fmt::format("all run numbers up to {} are taken", path));
    throw cannot_create({.option = "--run", .path = std::to_string(run_)},
                        fmt::format("{} exists already, finished or not{}", path,
                                    further.empty() ? "" : ", or the log of another format does"));
  }
  settle_case(output, folders, case_, name + ".part");
  logs_ = std::move(logs);
}

std::vector<std::string> LogWriter::paths() const {
  std::vector<std::string> paths;
  for (const Log& log : logs_)
    if (!log.file.is_empty()) paths.push_back(log.file.path());
  return paths;
}

void LogWriter::write(const LogLine& line, system_clock::time_point start_wall_time) {
  const RunSize size = case_.size();
  const WallClock clock = wall_clock(start_wall_time, line.end_seconds);
  for (Log& log : logs_) {
    const LogFormat& format = *log.format;
    if (line.iteration < format.first_written) continue;
    ++log.iterations;
    log.seconds += line.seconds;
    if (log.iterations < format.written_step) continue;
    const double images = size.images_per_step * static_cast<double>(log.iterations);
    const LoggedInterval interval{.first = line.iteration - log.iterations + 1,
                                  .last = line.iteration,
                                  .images_per_second = images / log.seconds,
                                  .seconds = log.seconds,
                                  .loss = line.loss,
                                  .top1 = line.top1,
                                  .top5 = line.top5,
                                  .learning_rate = line.learning_rate,
                                  .stamp = clock.stamp,
                                  .fine_stamp = clock.fine_stamp,
                                  .unix_seconds = clock.unix_seconds};
    const std::string header = log.file.is_empty() ? format.header(size, case_.model) : "";
    log.file.write(header + format.line(interval, size) + "\n", line.iteration);
    log.iterations = 0;
    log.seconds = 0;
  }
}

void LogWriter::finish() {
  for (Log& log : logs_) log.file.save();
  std::vector<PartialLog*> published;
  try {
    for (Log& log : logs_) {
      if (log.file.is_empty()) continue;
      log.file.publish();
      published.push_back(&log.file);
    }
  } catch (...) {
    for (PartialLog* file : published) file->withdraw();
    throw;
  }
}

}  // namespace plumb
