#include "results/explain/trace_stream.h"

#include <algorithm>
#include <cctype>

namespace plumb {
namespace {

constexpr std::size_t kChunk = 1 << 16, kLongestEscape = 6;  // \u0041

// The length of the escape that begins with this backslash; 0: it is none of JSON's.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2 || std::string_view(R"("\/bfnrtu)").find(text[1]) == text.npos) return 0;
  if (text[1] != 'u') return 2;
  const std::string_view digits = text.substr(2, 4);
  const auto is_hexadecimal = [](unsigned char c) { return std::isxdigit(c) != 0; };
  return digits.size() == 4 && std::ranges::all_of(digits, is_hexadecimal) ? kLongestEscape : 0;
}

// Moves text from the front of `raw`; what may be half of an escape stays unless it is the end.
void move_text(std::string& raw, bool is_end, std::string& text) {
  std::size_t begin = 0;
  for (std::size_t at = raw.find('\\'); at != raw.npos; at = raw.find('\\', begin)) {
    text.append(raw, begin, at - begin);
    begin = at;
    if (!is_end && raw.size() - at < kLongestEscape) break;
    const std::size_t length = escape_length(std::string_view(raw).substr(at));
    text.append(length == 0 ? "\\\\" : raw.substr(at, length));
    begin = at + std::max<std::size_t>(length, 1);
  }
  const bool waits = begin < raw.size() && raw[begin] == '\\';
  if (!waits) text.append(raw, begin);
  raw.erase(0, waits ? begin : raw.size());
}

}  // namespace

TraceStream::TraceStream(const std::filesystem::path& file) : file_(::gzopen(file.c_str(), "rb")) {}

TraceStream::int_type TraceStream::underflow() {
  text_.clear();
  while (text_.empty() && !at_end_) {
    const std::size_t before = raw_.size();
    raw_.resize(before + kChunk);
    const int got = ::gzread(file_.get(), raw_.data() + before, static_cast<unsigned>(kChunk));
    raw_.resize(before + static_cast<std::size_t>(std::max(got, 0)));
    int error = Z_OK;
    ::gzerror(file_.get(), &error);
    whole_ = got >= 0 && (error == Z_OK || error == Z_STREAM_END);
    at_end_ = got <= 0;
    move_text(raw_, at_end_, text_);
  }
  setg(text_.data(), text_.data(), text_.data() + text_.size());
  return text_.empty() ? traits_type::eof() : traits_type::to_int_type(text_.front());
}

}  // namespace plumb
