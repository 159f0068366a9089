// Progress on stderr: a bar on a terminal, now and then a line elsewhere.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace plumb {

struct Terminal {
  bool is_terminal = false;
  int columns = 80;
  bool colors = false;  // a terminal that knows them, and NO_COLOR isn't set
};
Terminal terminal_of(std::FILE* stream);

// "[=====     ] 60/120  25.3 images/s  0:31 left", narrower than `columns`; without the bar if that is 0.
std::string progress_line(std::int64_t done, std::int64_t total, double per_second, double seconds_left,
                          int columns, const char* unit = "images/s");

// One line that is drawn over and over. Draws nothing off a terminal.
class LiveLine {
 public:
  LiveLine(std::FILE* stream, const Terminal& terminal) : stream_(stream), terminal_(terminal) {}
  ~LiveLine() { clear(); }
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  const Terminal& terminal() const { return terminal_; }
  void draw(const std::string& line);  // cut where the terminal ends
  void clear();

 private:
  std::FILE* stream_;
  Terminal terminal_;
  bool visible_ = false;
};

// On a terminal a bar that is drawn at most five times a second. Elsewhere, of what takes over a minute, a
// line at most every 10 s and at least every 10 %.
class ProgressBar {
 public:
  // `stream`: null draws nothing. `unit`: of the rate, `per_iteration` of them an iteration.
  ProgressBar(std::FILE* stream, const Terminal& terminal, std::int64_t iterations,
              std::int64_t per_iteration, const char* unit = "images/s")
      : stream_(stream),
        line_(stream, terminal),
        iterations_(iterations),
        per_iteration_(per_iteration),
        unit_(unit) {}

  // `elapsed_seconds`: since the first iteration began.
  void update(std::int64_t iterations_done, double elapsed_seconds);
  void clear() { line_.clear(); }

 private:
  std::FILE* stream_;
  LiveLine line_;
  std::int64_t iterations_, per_iteration_;
  const char* unit_;
  double drawn_at_seconds_ = 0;
};

}  // namespace plumb
