#include "bench/output/log_writer.h"

#include <spdlog/fmt/chrono.h>

#include <algorithm>
#include <ctime>

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

}  // namespace

std::string format_lines(const LogFormat& format, const LogLine& last, std::int64_t iterations,
                         double seconds, const RunSize& size, system_clock::time_point start_wall_time) {
  const WallClock clock = wall_clock(start_wall_time, last.end_seconds);
  return format.line({.first = last.iteration - iterations + 1,
                      .last = last.iteration,
                      .images_per_second = size.images_per_step * static_cast<double>(iterations) / seconds,
                      .seconds = seconds,
                      .loss = last.loss,
                      .top1 = last.top1,
                      .top5 = last.top5,
                      .learning_rate = last.learning_rate,
                      .stamp = clock.stamp,
                      .fine_stamp = clock.fine_stamp,
                      .unix_seconds = clock.unix_seconds},
                     size) +
         "\n";
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
      throw Error(ExitCode::usage,
                  "option --log-format: '{}' is not one that can be written; give some of {}", name,
                  fmt::join(written_formats(), ", "));
  std::vector<const LogFormat*> chosen;
  for (const LogFormat* format : log_formats()) {
    if (format->is_own_layout || std::ranges::find(wanted, format->name) == wanted.end()) continue;
    const std::int64_t least = format->first_written + format->written_step;
    if (iterations > 0 && iterations < least)
      throw Error(ExitCode::usage,
                  "option --iters: {} is too few for a line of --log-format {}; give at least {}", iterations,
                  format->name, least);
    chosen.push_back(format);
  }
  return chosen;
}

LogWriter::LogWriter(const std::string& log_dir, const LogCase& log_case, std::optional<int> run,
                     const std::vector<const LogFormat*>& further)
    : case_(log_case) {
  std::vector<const LogFormat*> formats{plumb::log_formats().front()};
  formats.insert(formats.end(), further.begin(), further.end());
  const Output output{.option = "--log-dir", .path = log_dir};
  // Locked in the same order in every run: no two runs wait for each other.
  std::deque<CaseFolder> folders;
  for (const LogFormat* format : formats) {
    const std::string below = format->is_own_layout ? "" : fmt::format("{}/", format->name);
    folders.emplace_back(output, fmt::format("{}/{}{}", log_dir, below, case_.folder()), case_);
  }
  const int last = run.value_or(kMostRuns);
  std::string name;
  for (run_ = run.value_or(1); run_ <= last && logs_.empty(); ++run_) {
    name = fmt::format("{}{}.log", case_.stem(), run_);
    logs_ = create(output, folders, name, formats);
  }
  --run_;
  if (!logs_.empty()) {
    for (CaseFolder& folder : folders) folder.keep();
    return;
  }
  const std::string path = fmt::format("{}/{}", folders.front().path(), name);
  if (!run) throw cannot_create(output, fmt::format("all run numbers up to {} are taken", path));
  throw cannot_create({.option = "--run", .path = std::to_string(run_)},
                      fmt::format("{} exists already, finished or not{}", path,
                                  further.empty() ? "" : ", or the log of another format does"));
}

std::vector<LogWriter::Log> LogWriter::create(const Output& log_dir, const std::deque<CaseFolder>& folders,
                                              const std::string& name,
                                              const std::vector<const LogFormat*>& formats) {
  std::vector<Log> logs;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    std::optional<PartialLog> file = PartialLog::create(log_dir, folders[i].path() + "/" + name);
    if (!file) return {};
    logs.push_back({formats[i], std::move(*file)});
  }
  return logs;
}

std::vector<std::string> LogWriter::paths() const {
  std::vector<std::string> paths;
  for (const Log& log : logs_)
    if (!log.file.is_empty()) paths.push_back(log.file.path());
  return paths;
}

void LogWriter::write(const LogLine& line, system_clock::time_point start_wall_time) {
  const RunSize size = case_.size();
  for (Log& log : logs_) {
    const LogFormat& format = *log.format;
    if (line.iteration < format.first_written) continue;
    ++log.iterations;
    log.seconds += line.seconds;
    if (log.iterations < format.written_step) continue;
    log.file.write((log.file.is_empty() ? format.header(size, case_.model) : "") +
                       format_lines(format, line, log.iterations, log.seconds, size, start_wall_time),
                   line.iteration);
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
