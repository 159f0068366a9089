// The logs of a run, written by rank 0. One is always there, in the layout that DLPerf's analyzers read
// (own_line in results/formats/log_format.h), a line per iteration, at
// D/<N>n<G>g/<model>_b<BS>_<prec>_<K>.log. Further formats are at D/<format>/<N>n<G>g/ under the same name; K
// is free in all folders. While running, the files have ".part" after their names.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/output.h"
#include "results/formats/log_format.h"

namespace plumb {

// The configuration of a run. A folder of logs holds runs of one configuration; its file ".plumbline-case"
// contains it as one line of JSON.
struct LogCase {
  std::string model, precision;  // "resnet50", "fp32"
  std::int64_t batch_per_device = 1;
  std::int64_t image_size = 224;
  std::string data = "synthetic";  // "synthetic", "images" (a folder of them) or "batch" (a file)
  std::string head;                // head_options()
  std::map<std::string, std::string> settings;  // log_settings()
  int nodes = 1, devices_per_node = 1;

  RunSize size() const;
  std::string folder() const;  // "4n8g"
  std::string stem() const;    // "resnet50_b128_fp32_", of the names of its logs
};

// The options of a head, which tell runs of one backbone apart: "--head pfc --classes 85742 --embedding 512
// --sample-rate 0.1", then --prelu and --head-dtype where they are unusual; empty without a head.
std::string head_options(const nlohmann::ordered_json& config);

// Makes `log_case` the configuration of the folders, unless it is already. Call it when each folder holds
// this run's log, `own_log`, so that other runs see it. The first folder is the same in all runs and stays
// locked meanwhile. `log_dir`: the option for messages. Throws Error(cannot_create) if a folder holds
// finished logs of another configuration, if a run of another configuration is writing there, if another
// program holds the lock for 30 s, or if a case file can't be written.
void settle_case(const Output& log_dir, const std::vector<std::string>& folders, const LogCase& log_case,
                 const std::string& own_log);

struct LogLine {
  std::int64_t iteration = 0;  // from 0
  double loss = 0;
  double top1 = 0, top5 = 0;  // shares of the batch, 0 to 1; NaN: not counted
  double learning_rate = 0;
  double seconds = 0;      // of this iteration
  double end_seconds = 0;  // from start_wall_time to its end
};

// The formats that --log-format names, "A,B", in the order of log_formats() and each once; those that read
// the first log add nothing. Throws Error(usage): a name that no format has or that can't be written,
// `iterations` (0: not known) too few for a single line.
std::vector<const LogFormat*> formats_to_write(const std::string& names, std::int64_t iterations);
// The names that formats_to_write accepts.
std::vector<std::string> written_formats();

// One log: "….log.part" while the run goes on, "….log" once all is well.
class PartialLog {
 public:
  // Creates the `.log.part`; nothing if a log of that name is there, finished or not. `path` ends in ".log".
  // `log_dir`: the option for messages. Throws Error(cannot_create).
  static std::optional<PartialLog> create(const Output& log_dir, const std::string& path);
  PartialLog(PartialLog&&) = default;
  PartialLog& operator=(PartialLog&&) = delete;
  // Without finish(), leaves the `.log.part`; removes it if no line was written.
  ~PartialLog();

  const std::string& path() const { return path_; }
  bool is_empty() const { return written_bytes_ == 0; }

  // One write(2) at the end of the file; of a line that doesn't fit on the disk nothing is left. (A SIGKILL
  // between the pages of a write can cut a line off there.) `text` has the end of line; `iteration` is for
  // the message. Throws Error(io_error), also if the file no longer has its name.
  void write(const std::string& text, std::int64_t iteration);
  // Makes the lines last. Throws Error(io_error), also if a write has failed before.
  void save();
  // Removes ".part" from the name; never replaces a file. Throws Error(cannot_create) if a file of that name
  // has appeared, Error(io_error) if the unfinished file is gone or was replaced.
  void publish();
  // Puts ".part" back, as well as it can.
  void withdraw() noexcept;

 private:
  PartialLog(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string part_path() const { return path_ + ".part"; }
  void require_its_name() const;

  std::string path_;
  UniqueFd file_;
  std::int64_t written_bytes_ = 0;
  bool published_ = false, failed_ = false;
};

class LogWriter {
 public:
  // Creates every `.log.part`. `run`: K; empty: the next free. Throws Error(cannot_create) if a folder can't
  // be made or written, if run K exists (finished or not), or if a case folder holds another configuration;
  // then no log is left behind.
  LogWriter(const std::string& log_dir, const LogCase& log_case, std::optional<int> run,
            const std::vector<const LogFormat*>& further = {});

  // "….log", whether it is there or not.
  const std::string& path() const { return logs_.front().file.path(); }
  // Paths of all logs that have a line.
  std::vector<std::string> paths() const;
  int run() const { return run_; }

  // Iterations come one after the other, from 0. Stamps are in local time, with the offset from UTC that held
  // at `start_wall_time`. Throws Error(io_error).
  void write(const LogLine& line, std::chrono::system_clock::time_point start_wall_time);
  // Makes all logs last and gives them their names, or none of them. Throws Error(io_error),
  // Error(cannot_create) if somebody has made such a file meanwhile.
  void finish();

 private:
  struct Log {
    const LogFormat* format;
    PartialLog file;
    std::int64_t iterations = 0;  // of the line that isn't written yet
    double seconds = 0;
  };

  LogCase case_;
  int run_ = 0;
  std::vector<Log> logs_;
};

}  // namespace plumb
