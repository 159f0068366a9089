#include "bench/output/log_writer.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/error.h"

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
  std::tm parts{};
  gmtime_r(&whole, &parts);
  char date[32], text[64], fine[64];
  std::strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &parts);
  const int micro = static_cast<int>((stamp_us - floor<seconds>(stamp_us)).count());
  std::snprintf(text, sizeof text, "%s,%03d", date, micro / 1000);
  std::snprintf(fine, sizeof fine, "%s.%06d", date, micro);
  return {text, fine, duration<double>(now.time_since_epoch()).count()};
}

bool can_be_written(const Dialect& dialect) {
  return dialect.reads_own_layout || dialect.format.line != nullptr;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

std::string format_log_line(const LogLine& line, double images_per_step,
                            system_clock::time_point start_wall_time) {
  char text[512];
  const int length = std::snprintf(
      text, sizeof text,
      "%s-INFO: [Pass 0, train batch %lld] \tloss %.5f, acc1 %.5f, acc5 %.5f, lr %.5f, elapse %.6f sec "
      "Epoch[0] Batch[%lld]\tSpeed: %.2f samples/sec\n",
      wall_clock(start_wall_time, line.end_seconds).stamp.c_str(), static_cast<long long>(line.iteration),
      line.loss, line.top1, line.top5, line.learning_rate, line.seconds,
      static_cast<long long>(line.iteration + 1), images_per_step / line.seconds);
  return {text, std::min(static_cast<std::size_t>(length), sizeof text - 1)};
}

std::string names_of_written_dialects() {
  std::string names;
  for (const Dialect* dialect : dialects())
    if (can_be_written(*dialect)) names += (names.empty() ? "" : ", ") + std::string(dialect->name);
  return names;
}

std::vector<const Dialect*> dialects_to_write(const std::string& names, std::int64_t iterations) {
  if (names.empty()) return {};
  const std::vector<std::string> wanted = split_at_commas(names);
  for (const std::string& name : wanted)
    if (const Dialect* dialect = find_dialect(name); !dialect || !can_be_written(*dialect))
      throw Error(ExitCode::usage, "option --dialect: '" + name + "' is not one that can be written; give " +
                                       "some of " + names_of_written_dialects());
  std::vector<const Dialect*> chosen;
  for (const Dialect* dialect : dialects()) {
    if (!dialect->format.line || std::ranges::find(wanted, dialect->name) == wanted.end()) continue;
    const std::int64_t least = dialect->format.first_iteration + dialect->format.iterations_per_line;
    if (iterations > 0 && iterations < least)
      throw Error(ExitCode::usage, "option --iters: " + std::to_string(iterations) +
                                       " is too few for a line of --dialect " + std::string(dialect->name) +
                                       "; give at least " + std::to_string(least));
    chosen.push_back(dialect);
  }
  return chosen;
}

LogWriter::LogWriter(const std::string& log_dir, const LogCase& log_case, std::optional<int> run,
                     const std::vector<const Dialect*>& further)
    : case_(log_case) {
  std::vector<const Dialect*> dialects{nullptr};
  dialects.insert(dialects.end(), further.begin(), further.end());
  std::vector<std::string> folders;
  std::vector<UniqueFd>
      locks;  // always that of the first folder first, so that no two runs wait for each other
  for (const Dialect* dialect : dialects) {
    folders.push_back(log_dir + "/" + (dialect ? std::string(dialect->name) + "/" : "") + case_.folder());
    locks.push_back(lock_case_folder(folders.back(), case_));
  }
  const int last = run.value_or(kMostRuns);
  for (run_ = run.value_or(1); run_ <= last && logs_.empty(); ++run_)
    logs_ = create(folders, case_.stem() + std::to_string(run_) + ".log", dialects);
  --run_;
  if (!logs_.empty()) return;
  const std::string path = folders.front() + "/" + case_.stem() + std::to_string(run_) + ".log";
  if (run)
    throw log_cannot_be_created(path, "run " + std::to_string(run_) + " exists already, finished or not" +
                                          (further.empty() ? "" : ", in one of its dialects") +
                                          "; give another --run");
  throw log_cannot_be_created(path, "all run numbers are taken; give another --log-dir");
}

std::vector<LogWriter::Log> LogWriter::create(const std::vector<std::string>& folders,
                                              const std::string& name,
                                              const std::vector<const Dialect*>& dialects) {
  std::vector<Log> logs;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    std::optional<PartialLog> file = PartialLog::create(folders[i] + "/" + name);
    if (!file) return {};
    logs.push_back({dialects[i], std::move(*file)});
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
  for (Log& log : logs_) {
    if (log.dialect)
      write_interval(log, line, start_wall_time);
    else
      log.file.write(format_log_line(line, case_.size().images_per_step, start_wall_time), line.iteration);
  }
}

void LogWriter::write_interval(Log& log, const LogLine& line, system_clock::time_point start_wall_time) {
  const LineFormat& format = log.dialect->format;
  if (line.iteration < format.first_iteration) return;
  ++log.iterations;
  log.seconds += line.seconds;
  if (log.iterations < format.iterations_per_line) return;
  const RunSize size = case_.size();
  const WallClock clock = wall_clock(start_wall_time, line.end_seconds);
  const LoggedInterval interval{
      .first = line.iteration - log.iterations + 1,
      .last = line.iteration,
      .images_per_second = size.images_per_step * static_cast<double>(log.iterations) / log.seconds,
      .loss = line.loss,
      .top1 = line.top1,
      .learning_rate = line.learning_rate,
      .stamp = clock.stamp,
      .fine_stamp = clock.fine_stamp,
      .unix_seconds = clock.unix_seconds};
  const bool is_first = format.header && log.file.is_empty();
  log.file.write((is_first ? format.header(size, case_.model) : "") + format.line(interval, size) + "\n",
                 line.iteration);
  log.iterations = 0;
  log.seconds = 0;
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
