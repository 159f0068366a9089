// One log: "….log.part" while the run goes on, "….log" once all is well.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/output.h"

namespace plumb {

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

  // One write(2) at the end of the file; of a line that doesn't fit on the disk nothing is left. `text` has
  // the end of line; `iteration` is for the message. Throws Error(io_error), also if the file no longer has
  // its name. (Linux looks for SIGKILL between the pages of a write: a kill in that microsecond of a line
  // that crosses a page boundary can cut it off there. Such a file ends without an end of line.)
  void write(const std::string& text, std::int64_t iteration);
  // Makes the lines last. Throws Error(io_error), also if a write has failed before.
  void save();
  // Takes ".part" off the name, without replacing a file. Throws Error(cannot_create) if somebody has made
  // such a file meanwhile, Error(io_error) if the unfinished one is gone or another.
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

}  // namespace plumb
