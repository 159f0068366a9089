// Sentences on stderr, by spdlog: warnings in color on a terminal, few lines elsewhere.
#pragma once

#include <spdlog/logger.h>

#include <cstdio>
#include <string>

#include "base/console/progress.h"

namespace plumb {

// --quiet, neither, --verbose.
enum class Loudness { quiet, usual, verbose };

// Off a terminal at most four lines in all, of which one is kept for warn() and one for last().
class Messages {
 public:
  // `origin` stands in front of every sentence but the last: "node1 rank 0: ".
  Messages(std::FILE* stream, const Terminal& terminal, Loudness loudness, const std::string& origin = "");

  // For --verbose.
  void detail(const std::string& sentence) { log_keeping(warned_ ? 1 : 2, spdlog::level::debug, sentence); }
  // For the user to know; left out if quiet, or if the lines are used up.
  void say(const std::string& sentence) { log_keeping(warned_ ? 1 : 2, spdlog::level::info, sentence); }
  // For doubts about the result; left out if quiet. The first one always finds a line.
  void warn(const std::string& sentence);
  // The last line: where the results are, or why there are none. Nothing comes after it.
  void last(const std::string& sentence);

 private:
  void log_keeping(int lines_kept, spdlog::level::level_enum level, const std::string& sentence);

  spdlog::logger logger_;
  int lines_left_;
  std::string origin_;
  bool warned_ = false;
};

}  // namespace plumb
