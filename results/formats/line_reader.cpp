#include "results/formats/line_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "results/formats/line_shape.h"

namespace plumb {
namespace {

constexpr std::size_t kChunk = 64 << 10;
constexpr std::uint64_t kHashFactor = 0x9e3779b97f4a7c15;  // odd, so that no chunk's hash gets lost

// Takes off the front of `rest` what stands before `mark`; nothing if that isn't there.
std::optional<std::string_view> take_until(std::string_view& rest, std::string_view mark) {
  constexpr std::size_t kLongestPrefix = 200;
  const std::size_t end = rest.substr(0, kLongestPrefix).find(mark);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end + mark.size());
  return taken;
}

bool take(std::string_view& rest, std::string_view text) {
  if (!rest.starts_with(text)) return false;
  rest.remove_prefix(text.size());
  return true;
}

// "[1,3]<stdout>:", "[default3]:", "[rank3]:", "[pod/name/container] ".
std::optional<WrittenLine> without_brackets(std::string_view rest) {
  rest.remove_prefix(1);
  const std::optional<std::string_view> inside = take_until(rest, "]");
  if (!inside || inside->empty()) return std::nullopt;
  if (take(rest, "<stdout>:") || take(rest, "<stderr>:"))
    return WrittenLine{inside->substr(inside->rfind(',') + 1), rest};
  const bool is_rank = inside->starts_with("default") || inside->starts_with("rank");
  if (is_rank && is_decimal_digit(inside->back()) && take(rest, ":"))
    return WrittenLine{inside->substr(inside->find_first_of("0123456789")), rest};
  if (inside->starts_with("pod/") && take(rest, " ")) return WrittenLine{inside->substr(4), rest};
  return std::nullopt;
}

// "3: ", "rank-id:3:".
std::optional<WrittenLine> without_number(std::string_view rest) {
  const bool is_named = take(rest, "rank-id:");
  if (!is_named) rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const std::optional<std::string_view> number = take_until(rest, is_named ? ":" : ": ");
  if (!number || number->empty() || !std::ranges::all_of(*number, is_decimal_digit)) return std::nullopt;
  return WrittenLine{*number, rest};
}

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

std::optional<WrittenLine> LineReader::next_written() {
  const std::optional<std::string_view> whole = next();
  if (!whole) return std::nullopt;
  std::string_view line = *whole;
  if (line.find('\x1b') != std::string_view::npos) {
    plain_.clear();
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] != '\x1b')
        plain_ += line[i];
      else if (line.substr(i + 1).starts_with('['))  // up to the letter that ends it
        i = std::min(line.find_first_not_of("0123456789;?", i + 2), line.size());
    }
    line = plain_;
  }
  WrittenLine written{"", line};
  for (int prefixes = 0; prefixes < 2 && !written.text.empty(); ++prefixes) {
    const auto stripped =
        written.text.front() == '[' ? without_brackets(written.text) : without_number(written.text);
    if (!stripped) break;
    written = {written.writer.empty() ? stripped->writer : written.writer, stripped->text};
    written.text.remove_prefix(std::min(written.text.find_first_not_of(' '), written.text.size()));
  }
  return written;
}

}  // namespace plumb
