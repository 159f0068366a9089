// A log dialect: how the lines of one framework's logs give a run's speed, and how Plumbline writes them.
// Each dialect is one small file; what they share (reading, checking that the log is whole, finding out a
// dialect) is here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/formats/line_reader.h"
#include "results/record/note.h"

namespace plumb {

// Iterations warmup … iterations-1 count, as far as a dialect's lines can tell them apart. Defaults: those of
// DLPerf's scripts (commit c89430b).
struct Window {
  std::int64_t iterations = 120, warmup = 20;
};

// The run that a log is of, as its name and folder say.
struct RunSize {
  double images_per_step = 0;  // over all ranks
  std::int64_t nodes = 1, devices_per_node = 1;

  std::int64_t ranks() const { return nodes * devices_per_node; }
};

// The part of an iteration that a line holds; where it takes two lines, the value belongs to the index before
// it.
enum class LinePart { all, index, value };

// One line, read.
struct LineReading {
  LinePart part = LinePart::all;
  std::int64_t index = 0;    // the iteration as the line numbers it
  double value = 0;          // speed in images/s, time or stamp, in the dialect's unit
  std::string_view problem;  // not empty: the line belongs to the dialect but can't be read
};

// The reading of a line with a value above 0. The texts, which last as long as the program, say what is wrong
// where the index is missing or negative, where the value is missing, and where it isn't positive or finite.
LineReading reading_of(std::optional<std::int64_t> index, std::optional<double> value,
                       std::string_view no_index, std::string_view no_value,
                       std::string_view not_positive = "has a speed that is not a positive number");

// The lines of a whole log: lines_per_index of them for first_index, as many for first_index + index_step, ….
struct LogSeries {
  std::vector<double> values;  // as far as the window wants them, by index, then in the order of the lines
  std::int64_t first_index = 0, lines_per_index = 1, index_step = 1;
  std::int64_t lines = 0;       // in all
  std::int64_t late_lines = 0;  // of ranks that stand behind a line of the next index
};

// What Plumbline's line tells: iterations `first` to `last` (from 0) as rank 0 saw them.
struct LoggedInterval {
  std::int64_t first = 0, last = 0;
  double images_per_second = 0;         // over all ranks and these iterations
  double seconds = 0;                   // of them all
  double loss = 0, top1 = 0, top5 = 0;  // of the last one; top1, top5: shares of the batch, 0 to 1, or NaN
  double learning_rate = 0;
  std::string_view stamp;       // wall clock at its end, "2025-01-02 23:59:53,657"
  std::string_view fine_stamp;  // the same, "2025-01-02 23:59:53.657123"
  double unix_seconds = 0;      // the same, since 1970
};

// How Plumbline writes a run in a dialect: a line, without its end, for iterations
// first_iteration … first_iteration + iterations_per_line - 1, one for as many after them, …; what is left in
// the end has none. It may be several lines, with ends between them.
struct LineFormat {
  std::int64_t iterations_per_line = 1, first_iteration = 0;
  std::string (*header)(const RunSize& size, std::string_view model) = nullptr;  // lines before the first
  std::string (*line)(const LoggedInterval& interval, const RunSize& size) = nullptr;
};

// The line of every run's first log, which three published analyzers read as it is:
//   2025-01-02 23:59:53,657-INFO: [Pass 0, train batch 1] \tloss 6.99900, acc1 0.00000, acc5 0.00000, lr
//   0.10000, elapse 0.320803 sec Epoch[0] Batch[2]\tSpeed: 399.00 samples/sec
std::string own_line(const LoggedInterval& interval, const RunSize& size);
// True if the file's first line is one.
bool begins_with_own_line(const std::filesystem::path& file);

// Stamps never fall, but those without a year at its end.
enum class ValueKind { speed_or_time, stamp, stamp_without_year };

// Who rounds figures to 2 decimals: NumPy, Python, or Python the averages only. A table is Python's, with
// nothing rounded before the end, and a speedup of 0 without a 1n1g.
enum class Rounding { numpy, python_averages, python, python_table };

struct Dialect {
  std::string_view name;       // "paddle_speed"
  std::string_view framework;  // as results/published/published.csv spells it: "PaddlePaddle"
  std::string_view source;     // what writes such lines and what reads them
  std::string_view model;      // of every log of the framework in it: "resnet50"; empty: the log's name says
  Window default_window = {};
  std::int64_t lowest_warmup = 0;    // what the lines or the script need
  std::int64_t index_step = 1;       // from line to line; a line's value is of as many iterations
  bool step_is_first_index = false;  // index_step is what the first line is numbered
  // The first line's index: lowest … highest, a multiple of index_step.
  std::int64_t lowest_first_index = 0, highest_first_index = 0;
  ValueKind values = ValueKind::speed_or_time;  // stamps are in microseconds
  bool shares_lines_with_another = false;       // which comes before it and is what `auto` takes
  bool ranks_share_a_log = false;  // each rank of its node, or of all, may have written a line per index
  bool has_no_end = false;         // lines behind --iters count as well: it only says how many to want
  std::size_t decimals_at_line_end = 0;  // a line ends with its value, with so many: fewer show a torn line
  Rounding rounding = Rounding::numpy;

  // Nothing if the line isn't one of the dialect's.
  std::optional<LineReading> (*read_line)(std::string_view line, const RunSize& size) = nullptr;
  // How many indices a log must have that begins with `first_index`; without it, iterations / index_step.
  std::int64_t (*indices_wanted)(const Window& window, std::int64_t first_index) = nullptr;
  // Images per second from the values of as many indices, not rounded.
  double (*speed)(const LogSeries& series, const Window& window, const RunSize& size) = nullptr;
  // A clause if the line says that the log is of another run than its name and folder; else empty.
  std::string (*contradiction)(std::string_view line, const RunSize& size) = nullptr;
  // One clause on what the published script does wrong with a log that is whole; empty if nothing.
  std::string (*caveat)(const LogSeries& series, const Window& window, const RunSize& size) = nullptr;
  // The window for people; without it, "iterations 21 to 120".
  std::string (*window_text)(const Window& window) = nullptr;
  LineFormat format = {};  // without a line(): Plumbline writes no log of its own for it

  bool has_stamps() const { return values != ValueKind::speed_or_time; }
  bool makes_a_table() const { return rounding == Rounding::python_table; }
  bool medians_in_python() const { return rounding >= Rounding::python; }
  bool reads_own_layout() const { return format.line == own_line; }

  // To 2 decimals, by the dialect's rounding.
  double round_average(double value) const;
  double round_median(double value) const;
  double speedup(double median, double base_median) const;  // of medians that aren't rounded yet
};

// All dialects, in the order in which `auto` prefers them.
std::span<const Dialect* const> dialects();
// nullptr if there is none of that name.
const Dialect* find_dialect(std::string_view name);
// The first of dialects() that has a line among the first lines of the file; nullptr if none has. Where two
// dialects share their lines, it is that of the speeds.
const Dialect* recognise_dialect(const std::filesystem::path& file);

// The values of a log's iterations, warm-up left out.
std::span<const double> after_warmup(const LogSeries& series, const Window& window);
// The window of as many iterations as `wanted` has in whole lines of `step` iterations, with the shortest
// warm-up of at least wanted.warmup that the dialect can leave out; nothing if no line remains.
std::optional<Window> in_whole_lines(const Dialect& dialect, const Window& wanted, std::int64_t step);
// A line that every rank writes into one log.
std::string once_per_rank(const std::string& line, const RunSize& size);
std::string window_text(const Dialect& dialect, const Window& window);

// A log read with every check: one line per iteration (or as many as the dialect has), in order, nothing
// missing, each value usable.
struct LogReading {
  double images_per_second = 0;  // rounded to 2 decimals, but see Rounding
  std::optional<Note> defect;    // set: the figure is none. Kinds: "unreadable", "truncated", "mixed", …
  std::string caveat;            // see Dialect::caveat
  std::string stall;             // see stall_text; empty: no step of the window stalled
  std::string divergence;        // see divergence_text
  std::int64_t iterations = 0;   // the most that Window::iterations may be for this log
  std::int64_t iterations_per_line = 1;
  std::int64_t bytes = 0;  // with `hash`: two equal files are one file copied
  std::uint64_t hash = 0;
};
LogReading read_log(const Dialect& dialect, const std::filesystem::path& file, const Window& window,
                    const RunSize& size);

extern const Dialect kPaddleSpeed, kPaddleTime, kMxnetRn50v1b, kMxnetArcface, kMxnetPartialFc, kNgcMxnetSpeed,
    kNgcMxnetTime, kNgcTfSpeed, kNgcTfTime, kNgcPytorchTime, kPytorch, kTf2Speed, kTf2Time, kMindspore,
    kOneflowCnn, kOneflowFace, kPlsc;

}  // namespace plumb
