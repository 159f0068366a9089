#include "bench/output/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/text.h"

namespace plumb {
namespace {

constexpr double kSecondsBetweenDraws = 0.2;
constexpr int kLinesOffTerminal = 4;

std::string clock_text(double seconds) {
  const long long whole = std::llround(std::clamp(seconds, 0.0, 1e9));
  return whole >= 3600 ? fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60)
                       : fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

Terminal terminal_of(std::FILE* stream) {
  Terminal terminal;
  const int fd = fileno(stream);
  terminal.is_terminal = isatty(fd) == 1;
  winsize size{};
  if (terminal.is_terminal && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    terminal.columns = size.ws_col;
  return terminal;
}

std::string progress_line(std::int64_t done, std::int64_t total, double per_second, double seconds_left,
                          int columns, const char* unit) {
  const std::string line =
      fmt::format(" {}/{}  {:.1f} {}  {} left", done, total, per_second, unit, clock_text(seconds_left));
  const int room = columns - static_cast<int>(line.size()) - 3;  // brackets, and the last column stays free
  if (room < 5) return line.substr(1, static_cast<std::size_t>(std::max(0, columns - 1)));
  const int cells = std::min(room, 40);
  const double share =
      total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0) : 0;
  return fmt::format("[{:{}}]{}", std::string(static_cast<std::size_t>(share * cells), '='), cells, line);
}

void LiveLine::draw(const std::string& line) {
  if (!terminal_.is_terminal) return;
  const auto columns = static_cast<std::size_t>(std::max(1, terminal_.columns - 1));
  std::fputs(fmt::format("\r{}\x1b[K", line.substr(0, columns)).c_str(), stream_);
  std::fflush(stream_);
  visible_ = true;
}

void LiveLine::clear() {
  if (!visible_) return;
  std::fputs("\r\x1b[K", stream_);
  std::fflush(stream_);
  visible_ = false;
}

void ProgressBar::update(std::int64_t iterations_done, double elapsed_seconds) {
  if (!line_.terminal().is_terminal || iterations_done <= 0 || elapsed_seconds <= 0) return;
  if (drawn_at_seconds_ >= 0 && elapsed_seconds - drawn_at_seconds_ < kSecondsBetweenDraws) return;
  drawn_at_seconds_ = elapsed_seconds;
  const double step_seconds = elapsed_seconds / static_cast<double>(iterations_done);
  const std::int64_t left = std::max<std::int64_t>(0, iterations_ - iterations_done);
  line_.draw(progress_line(iterations_done, iterations_, static_cast<double>(per_iteration_) / step_seconds,
                           static_cast<double>(left) * step_seconds, line_.terminal().columns, unit_));
}

Messages::Messages(std::FILE* stream, const Terminal& terminal, bool quiet)
    : stream_(stream),
      lines_left_(terminal.is_terminal ? std::numeric_limits<int>::max() : kLinesOffTerminal),
      quiet_(quiet) {}

// Keeps `lines_kept` lines for more important messages.
void Messages::print_keeping(int lines_kept, const std::string& sentence) {
  if (lines_left_ <= lines_kept) return;
  --lines_left_;
  std::fputs((sentence + "\n").c_str(), stream_);
}

void Messages::say(const std::string& sentence) {
  if (!quiet_) print_keeping(warned_ ? 1 : 2, sentence);
}

void Messages::warn(const std::string& sentence) {
  if (!quiet_) print_keeping(1, sentence);
  warned_ = true;
}

void Messages::last(const std::string& sentence) {
  print_keeping(0, sentence);
  lines_left_ = 0;
  std::fflush(stream_);
}

}  // namespace plumb
