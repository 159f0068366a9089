// The log of a run, in the one layout that DLPerf's analyzers for Paddle (speed and time) and MXNet RN50v1b
// all read. A line, one per iteration, written by rank 0:
//   2025-01-02 23:59:53,657-INFO: [Pass 0, train batch 1] \tloss 6.99900, acc1 0.00000, acc5 0.00000, lr
//   0.10000, elapse 0.320803 sec Epoch[0] Batch[2]\tSpeed: 399.00 samples/sec
// at D/<N>n<G>g/<model>_b<BS>_<prec>_<K>.log. While running, the file has ".part" after its name.
//
// A case folder holds runs of one configuration. Which one stands in its file ".plumbline-case" (one line of
// JSON: model, batch_per_device, precision, image_size, data; where data is missing it is "synthetic"), which
// also serves as the lock for choosing K.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "bench/unique_fd.h"

namespace plumb {

struct LogCase {
  std::string model, precision;  // "resnet50", "fp32"
  std::int64_t batch_per_device = 1;
  std::int64_t image_size = 224;
  std::string data = "synthetic";  // "synthetic", "images" (a folder of them) or "batch" (a file)
  int nodes = 1, devices_per_node = 1;

  std::int64_t images_per_step() const { return batch_per_device * nodes * devices_per_node; }
  std::string folder() const;  // "4n8g"
};

struct LogLine {
  std::int64_t iteration = 0;  // from 0
  double loss = 0;
  double top1 = 0, top5 = 0;  // shares of the batch, 0 to 1
  double learning_rate = 0;
  double seconds = 0;      // of this iteration
  double end_seconds = 0;  // from start_wall_time to its end
};

// With the end of line. Stamps are in local time, with the offset from UTC that held at `start_wall_time`.
std::string format_log_line(const LogLine& line, std::int64_t images_per_step,
                            std::chrono::system_clock::time_point start_wall_time);

class LogWriter {
 public:
  // Creates the `.log.part`. `run`: K; empty: the next free. Throws Error(cannot_create) if the folder can't
  // be made or written, if run K exists (finished or not), or if the case folder holds another configuration.
  LogWriter(const std::string& log_dir, const LogCase& log_case, std::optional<int> run);
  // Without finish(), leaves the `.log.part`; removes it if no line was written.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  const std::string& path() const { return path_; }  // "….log", whether it is there yet or not
  int run() const { return run_; }

  // One write(2) at the end of the file; of a line that doesn't fit on the disk nothing is left. Throws
  // Error(io_error). (Linux looks for SIGKILL between the pages of a write: a kill in that microsecond of a
  // line that crosses a page boundary can cut it off there. Such a file ends without an end of line.)
  void write(const LogLine& line, std::chrono::system_clock::time_point start_wall_time);
  // Makes it last, and takes ".part" off its name without replacing a file. Throws Error(io_error),
  // Error(cannot_create) if somebody has made such a file meanwhile.
  void finish();

 private:
  void claim(std::optional<int> run);
  bool try_create(int run);
  std::string part_path() const { return path_ + ".part"; }

  LogCase case_;
  std::string folder_, path_;
  int run_ = 0;
  UniqueFd file_;
  std::int64_t written_bytes_ = 0;
  bool finished_ = false, failed_ = false;
};

}  // namespace plumb
