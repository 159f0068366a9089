// The lines of a text file, streamed: memory stays at one line and one chunk whatever the file's size. And
// what launchers and terminals put into them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace plumb {

struct WrittenLine {
  std::string_view writer;  // the rank or process that the launcher names, "3"; empty: it names none
  std::string_view text;    // the line as the program wrote it
};

// Lines end with \n, \r\n or \r, as Python reads text. NUL and other bytes are kept.
class LineReader {
 public:
  static constexpr std::size_t kLongestLine = 1 << 20;  // bytes

  // Throws Error(bad_data) if `path` isn't a regular file or can't be opened.
  explicit LineReader(const std::filesystem::path& path);

  // The next line without its end, valid until the next call; nothing at the end of the file. Throws
  // Error(bad_data) for a line above kLongestLine, Error(io_error) if reading fails.
  std::optional<std::string_view> next();
  // The same without colors, and without prefixes of mpirun ("[1,3]<stdout>:"), torchrun ("[default3]:"),
  // srun
  // ("3: "), kubectl ("[pod/name/container] ") and Partial FC ("rank-id:3:") in front.
  std::optional<WrittenLine> next_written();

  // False only for a last line that the file's end cuts off (or that its writer left without an end).
  bool line_had_end() const { return line_had_end_; }
  std::int64_t line_number() const { return line_number_; }  // of the line given last; the first is 1
  std::int64_t bytes_read() const { return bytes_read_; }
  std::uint64_t hash() const { return hash_; }  // of the bytes read; within one process

 private:
  bool read_chunk();
  std::size_t find_line_end();  // from begin_ on; the buffer's end if the line doesn't end in it

  UniqueFile file_;
  std::string buffer_, plain_;  // plain_: a line without its colors
  std::size_t begin_ = 0;       // of the text that next() has not returned yet
  std::size_t newline_ = 0;     // the next \n, if not below begin_; the buffer's end: there is none
  bool line_had_end_ = true;
  bool skip_newline_ = false;  // the line before ended with \r: a \n here belongs to it
  std::int64_t line_number_ = 0, bytes_read_ = 0;
  std::uint64_t hash_ = 0;
};

}  // namespace plumb
