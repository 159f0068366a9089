#include "results/formats/line_reader.h"

#include <cerrno>
#include <cstring>
#include <functional>

#include "base/error.h"

namespace plumb {
namespace {

constexpr std::size_t kChunk = 64 << 10;
constexpr std::uint64_t kHashFactor = 0x9e3779b97f4a7c15;  // odd, so that no chunk's hash gets lost

}  // namespace

LineReader::LineReader(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))  // a pipe would block, a folder can't be read
    throw Error(ExitCode::bad_data, "it is not a regular file");
  file_.reset(std::fopen(path.c_str(), "rb"));
  if (!file_) throw Error(ExitCode::bad_data, "cannot open it: {}", std::strerror(errno));
}

bool LineReader::read_chunk() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  const std::size_t kept = buffer_.size();
  buffer_.resize(kept + kChunk);
  const std::size_t got = std::fread(buffer_.data() + kept, 1, kChunk, file_.get());
  buffer_.resize(kept + got);
  if (got < kChunk && std::ferror(file_.get()))
    throw Error(ExitCode::io_error, "cannot read it to its end: {}", std::strerror(errno));
  bytes_read_ += static_cast<std::int64_t>(got);
  // Only the last chunk is a short one, so equal files have equal chunks.
  hash_ = (hash_ ^ std::hash<std::string_view>{}(std::string_view(buffer_).substr(kept))) * kHashFactor;
  newline_ = std::min(buffer_.find('\n'), buffer_.size());
  return got > 0;
}

std::size_t LineReader::find_line_end() {
  if (newline_ < begin_) newline_ = std::min(buffer_.find('\n', begin_), buffer_.size());
  const std::string_view line = std::string_view(buffer_).substr(begin_, newline_ - begin_);
  return std::min(line.find('\r'), line.size());
}

std::optional<std::string_view> LineReader::next() {
  while (true) {
    if (skip_newline_ && begin_ < buffer_.size()) {
      if (buffer_[begin_] == '\n') ++begin_;
      skip_newline_ = false;
    }
    const std::string_view rest = std::string_view(buffer_).substr(begin_);
    const std::size_t end = find_line_end();
    if (end > kLongestLine)
      throw Error(ExitCode::bad_data, "line {} is longer than 1 MiB, so this is not a training log",
                  line_number_ + 1);
    if (end < rest.size()) {
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
