// Synthetic logs for tests.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace plumb {

// A log's parameters: constant steps of `seconds`, also each line's elapsed time.
struct SyntheticLog {
  double seconds = 0.25;
  std::int64_t images_per_step = 128;
  int iterations = 120;
  std::string end_of_line = "\n";
};

// One line in Plumbline's layout, without its newline. Timestamps start at 23:59:50.
inline std::string log_line(const SyntheticLog& log, int i) {
  const auto ms = static_cast<long long>(log.seconds * 1000 * (i + 1)) + ((23 * 60 + 59) * 60 + 50) * 1000LL;
  char text[512];
  std::snprintf(text, sizeof text,
                "2025-01-%02lld %02lld:%02lld:%02lld,%03lld-INFO: [Pass 0, train batch %d] \tloss 6.99900, "
                "acc1 0.00000, "
                "acc5 0.00000, lr 0.10000, elapse %.6f sec Epoch[0] Batch[%d]\tSpeed: %.2f samples/sec",
                2 + ms / 86400000, ms / 3600000 % 24, ms / 60000 % 60, ms / 1000 % 60, ms % 1000, i,
                log.seconds, i + 1, static_cast<double>(log.images_per_step) / log.seconds);
  return text;
}

inline std::vector<std::string> log_lines(const SyntheticLog& log) {
  std::vector<std::string> lines;
  for (int i = 0; i < log.iterations; ++i) lines.push_back(log_line(log, i));
  return lines;
}

inline std::string joined(const std::vector<std::string>& lines, const std::string& end_of_line = "\n") {
  std::string text;
  for (const std::string& line : lines) text += line + end_of_line;
  return text;
}

inline std::string log_text(const SyntheticLog& log) {
  return joined(log_lines(log), log.end_of_line);
}

}  // namespace plumb
