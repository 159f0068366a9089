#include "results/line_reader.h"

#include <cerrno>
#include <cstring>

#include "models/error.h"

namespace plumb {
namespace {

constexpr std::size_t kChunk = 64 << 10;

std::size_t find_line_end(std::string_view text) {
  const std::size_t newline = text.find('\n');
  return std::min(newline, text.substr(0, newline).find('\r'));
}

}  // namespace

LineReader::LineReader(const std::filesystem::path& path) : path_(path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))  // a pipe would block, a folder can't be read
    throw Error(ExitCode::bad_data, "is not a regular file");
  file_.reset(std::fopen(path.c_str(), "rb"));
  if (!file_) throw Error(ExitCode::bad_data, std::string("can't be opened: ") + std::strerror(errno));
}

bool LineReader::read_chunk() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  const std::size_t kept = buffer_.size();
  buffer_.resize(kept + kChunk);
  const std::size_t got = std::fread(buffer_.data() + kept, 1, kChunk, file_.get());
  buffer_.resize(kept + got);
  if (got < kChunk && std::ferror(file_.get()))
    throw Error(ExitCode::io_error, std::string("can't be read to its end: ") + std::strerror(errno));
  bytes_read_ += static_cast<std::int64_t>(got);
  hash_ = fnv1a(std::string_view(buffer_).substr(kept), hash_);
  return got > 0;
}

std::optional<std::string_view> LineReader::next() {
  while (true) {
    if (skip_newline_ && begin_ < buffer_.size()) {
      if (buffer_[begin_] == '\n') ++begin_;
      skip_newline_ = false;
    }
    const std::string_view rest = std::string_view(buffer_).substr(begin_);
    const std::size_t end = find_line_end(rest);
    if (std::min(end, rest.size()) > kLongestLine)
      throw Error(ExitCode::bad_data, "line " + std::to_string(line_number_ + 1) +
                                          " is longer than 1 MiB, so this is no training log");
    if (end != std::string_view::npos) {
      skip_newline_ = rest[end] == '\r';
      begin_ += end + 1;
      ++line_number_;
      return rest.substr(0, end);
    }
    if (read_chunk()) continue;
    if (begin_ == buffer_.size()) return std::nullopt;
    const std::string_view last = std::string_view(buffer_).substr(begin_);
    begin_ = buffer_.size();
    line_had_end_ = false;
    ++line_number_;
    return last;
  }
}

}  // namespace plumb
