#include "base/console/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/text.h"

namespace plumb {
namespace {

constexpr double kSecondsBetweenDraws = 0.2;
constexpr double kSecondsBetweenLines = 10, kShareBetweenLines = 0.1, kLeastSecondsForLines = 60;

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
  const char *no_color = std::getenv("NO_COLOR"), *type = std::getenv("TERM");
  terminal.colors = terminal.is_terminal && (no_color == nullptr || *no_color == '\0') && type != nullptr &&
                    std::string_view(type) != "dumb";
  return terminal;
}

std::string progress_line(std::int64_t done, std::int64_t total, double per_second, double seconds_left,
                          int columns, const char* unit) {
  const std::string line =
      fmt::format(" {}/{}  {:.1f} {}  {} left", done, total, per_second, unit, clock_text(seconds_left));
  if (columns == 0) return line.substr(1);
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
  if (stream_ == nullptr || iterations_done <= 0 || elapsed_seconds <= 0) return;
  const double step_seconds = elapsed_seconds / static_cast<double>(iterations_done);
  const double all_seconds = step_seconds * static_cast<double>(std::max(iterations_, iterations_done));
  const bool on_terminal = line_.terminal().is_terminal;
  if (!on_terminal && all_seconds < kLeastSecondsForLines) return;
  const double between =
      on_terminal ? kSecondsBetweenDraws : std::max(kSecondsBetweenLines, kShareBetweenLines * all_seconds);
  if (elapsed_seconds - drawn_at_seconds_ < between) return;
  drawn_at_seconds_ = elapsed_seconds;
  const double left = std::max(0.0, all_seconds - elapsed_seconds);
  const std::string text =
      progress_line(iterations_done, iterations_, static_cast<double>(per_iteration_) / step_seconds, left,
                    on_terminal ? line_.terminal().columns : 0, unit_);
  if (on_terminal)
    line_.draw(text);
  else
    std::fputs((text + "\n").c_str(), stream_);
}

}  // namespace plumb
