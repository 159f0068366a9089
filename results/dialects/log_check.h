// Whether a log is whole: its lines are taken one by one, and in the end there is a defect or a series of
// values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/dialects/dialect.h"

namespace plumb {

class LogCheck {
 public:
  LogCheck(const Dialect& dialect, const Window& window, const RunSize& size)
      : dialect_(dialect), window_(window), size_(size) {}

  void take(LineReading reading, std::int64_t line_number);
  // To be called once, after the last line.
  std::optional<Defect> defect();
  const LogSeries& series() const { return series_; }

 private:
  bool is_first(std::int64_t index) const;
  void begin(std::int64_t index);
  // The line is of the index `back` steps before the expected one; 0: of the expected one.
  void take_value(double value, std::int64_t back, std::int64_t line_number);
  void check_stamp(double stamp, bool is_new_index, std::int64_t line_number);
  void note_disorder(std::int64_t index, std::int64_t line_number);
  std::optional<Defect> uneven_ranks();

  const Dialect& dialect_;
  const Window& window_;
  const RunSize& size_;
  LogSeries series_;
  std::vector<std::int64_t> lines_of_index_;  // of the first `wanted_`
  std::int64_t indices_ = 0, wanted_ = 1, repeats_ = 0;
  std::int64_t expected_ = -1;           // index of the next line; negative before the first
  std::int64_t open_index_ = -1;         // of the last line that gave an index only
  double stamp_ = 0, stamp_before_ = 0;  // the latest of the last index, and of the one before
  std::string unreadable_, gap_, repeated_, misfit_;
};

}  // namespace plumb
