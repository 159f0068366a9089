// Whether a log is whole: its lines are taken one by one, and in the end there is a defect or a series of
// values.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/formats/log_format.h"
#include "results/record/note.h"

namespace plumb {

class WholeLog {
 public:
  // All three must outlive it.
  WholeLog(const LogFormat& format, const Window& window, const RunSize& size)
      : format_(format), window_(window), size_(size) {}

  // A line that has at least the beginning of one of the format.
  void take(LineReading reading, std::string_view line, std::int64_t line_number);

  // To be called once, after the last line.
  std::optional<Note> defect();
  const LogSeries& series() const { return series_; }

 private:
  // Counters begin anew with an epoch.
  struct Epoch {
    std::int64_t number, first_iteration, first_index;
  };

  struct Position {
    std::int64_t epoch = 0, iteration = 0;
    auto operator<=>(const Position&) const = default;
  };

  bool is_further_metric(const LineReading& reading, std::string_view line) const;
  void take_indexed(const LineReading& reading, std::int64_t line_number);
  void take_after_gap(const LineReading& reading, std::int64_t line_number);
  void begin(const LineReading& reading);
  void find_step(const LineReading& reading, std::int64_t line_number);
  void set_step(std::int64_t step);
  // The reading's place among the log's indices; nothing if it belongs before them.
  std::optional<std::int64_t> index_of(const LineReading& reading);
  void take_value(const LineReading& reading, std::int64_t index, std::int64_t line_number);
  void check_stamp(double stamp, bool is_new_index, std::int64_t line_number);
  void note_gap(const LineReading& reading, std::int64_t line_number);
  void note_repeat(const LineReading& reading, std::int64_t line_number);
  // The most that Window::iterations may be for this log.
  std::int64_t iterations() const;
  std::string how_to_read() const;
  std::optional<Note> uneven_ranks();

  const LogFormat& format_;
  const Window& window_;
  const RunSize& size_;
  LogSeries series_;
  std::vector<Epoch> epochs_;
  std::vector<std::int64_t> lines_of_index_;  // of the first `wanted_`
  std::int64_t indices_ = 0, wanted_ = 1, repeats_ = 0;
  Position last_ = {};                           // of the latest index
  std::map<std::string, std::int64_t> next_of_;  // the index that each writer that lines name comes to
  struct {
    std::string text, writer;
    double value = 0;
  } taken_;  // the line before
  struct {
    std::int64_t iteration = 0, line = 0;
  } second_;                               // the line that told the step
  LineReading open_ = {.fit = Fit::none};  // the last line that gave an index only
  double stamp_ = 0, stamp_before_ = 0;    // the latest of the last index, and of the one before
  std::string unreadable_, gap_, repeated_, misfit_, unlike_;
};

}  // namespace plumb
