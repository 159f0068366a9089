// Shared by the log tests.
#pragma once

#include <time.h>

#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "bench/output/log_writer.h"
#include "tests/scratch_folder.h"

namespace plumb {

inline const LogCase kCase = {.model = "resnet50", .precision = "fp32", .batch_per_device = 128};

inline const std::vector<const LogFormat*> kFaceFormats = {&kMxnetArcface, &kMxnetPartialFc, &kOneflowFace,
                                                           &kPlsc};

inline LogLine line_of(std::int64_t iteration) {
  return {.iteration = iteration,
          .loss = 6.999,
          .learning_rate = 0.1,
          .seconds = 0.320803,
          .end_seconds = 0.320803 * static_cast<double>(iteration + 1)};
}

// A varying step time with a slow start.
inline double seconds_of(std::int64_t iteration) {
  return 0.25 + 0.01 * std::sin(static_cast<double>(iteration)) +
         2.0 / static_cast<double>(iteration * iteration + 1);
}

// A line of the first log, with its newline.
inline std::string format_log_line(const LogLine& line, std::int64_t batch,
                                   std::chrono::system_clock::time_point start) {
  const ScratchFolder folder;
  LogWriter log(folder.path(), {.model = "resnet50", .precision = "fp32", .batch_per_device = batch}, {});
  log.write(line, start);
  return read_text(log.path() + ".part");
}

inline void write_lines(LogWriter& log, int count) {
  for (int i = 0; i < count; ++i) log.write(line_of(i), std::chrono::system_clock::now());
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class InTimeZone {
 public:
  explicit InTimeZone(const char* zone) {
    setenv("TZ", zone, 1);
    tzset();
  }
  ~InTimeZone() {
    unsetenv("TZ");
    tzset();
  }
};

}  // namespace plumb
