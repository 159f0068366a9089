// A log format: how the lines of one framework's logs give a run's speed, and how Plumbline writes them. Each
// format's file states the shape of its lines and what their numbers mean: speeds, times of iterations, or
// stamps of a clock. read_log.h reads whole logs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/formats/line_shape.h"

namespace plumb {

// Iterations warmup … iterations-1 count, from a log's first one on. Defaults: those of DLPerf's scripts
// (commit c89430b).
struct Window {
  std::int64_t iterations = 120, warmup = 20;
};

// The run that a log is of, as its name and folder say.
struct RunSize {
  double images_per_step = 0;  // over all ranks; 1 where it isn't known
  std::int64_t nodes = 1, devices_per_node = 1;
  bool is_known = true;

  std::int64_t ranks() const { return nodes * devices_per_node; }
};

// One line, read.
struct LineReading {
  Fit fit = Fit::none;
  bool has_index = true, has_value = true;  // some formats take two lines
  std::int64_t epoch = 0, iteration = 0;    // as the line numbers them
  std::int64_t step = 0;                    // the iterations that the line is of; 0: it doesn't say
  std::string writer = {};                  // the rank or node that the line names; empty: it names none
  std::optional<double> mean = {};          // of all values so far
  std::optional<double> loss = {};          // where the line's groups give it
  double value = 0;                         // images/s, a time, or a stamp as its clock counts
  std::string_view problem = {};            // not empty: the line fits, but its value can't be
  std::string_view misfit = {};             // see Captured
};

// The lines of a whole log: lines_per_index of them for each index, an index every index_step iterations.
struct LogSeries {
  std::vector<double> values;  // as far as the window wants them, by index, then in the order of the lines
  std::vector<double> means;   // of all values up to each of them, where lines give them
  std::int64_t first_index = 0, lines_per_index = 1, index_step = 1;
  std::int64_t lead = 0;   // indices before the window's first iteration; negative: some have no line
  std::int64_t lines = 0;  // in all

  // Not every iteration has a line, but lines have means of all iterations, by which those without count.
  bool counts_means() const { return index_step > 1 && !means.empty(); }
  // The values from that index of the window on.
  std::span<const double> values_from(std::int64_t index_in_window) const;
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

// The line of every run's first log, which three published analyzers read as it is; see FormatFacts::writes.
constexpr std::string_view kOwnLine =
    "{stamp}-INFO: [Pass 0, train batch {last}] \tloss {loss:.5f}, acc1 {top1:.5f}, acc5 {top5:.5f}, lr "
    "{learning_rate:.5f}, elapse {seconds:.6f} sec Epoch[0] Batch[{done}]\tSpeed: {images_per_second:.2f} "
    "samples/sec";
constexpr std::string_view kOwnExample =
    "2025-01-02 23:59:53,657-INFO: [Pass 0, train batch 1] \tloss 6.99900, acc1 0.00000, acc5 0.00000, lr "
    "0.10000, elapse 0.320803 sec Epoch[0] Batch[2]\tSpeed: 399.00 samples/sec";
// True if the file's first line is one.
bool begins_with_own_line(const std::filesystem::path& file);

// Who rounds figures to 2 decimals: NumPy, Python, or Python the averages only. A table is Python's, with
// nothing rounded before the end.
enum class Rounding { numpy, python_averages, python, python_table };

// How a log says the size of its run: a line "WORD = N".
struct SizeWords {
  std::string_view batch_per_device, devices_per_node, nodes;
};

// Lines with a speed, or with the time that an iteration took.
struct SpeedFacts {
  double seconds = 0;  // a value is so many seconds, 1 or 0.001; 0: it is images/s
  int decimals = -1;   // the script rounds the speed of each line to these; negative: it doesn't
  enum Speaker { run, node, rank } of = run;  // whose images it counts; of a rank, unless the time is there
  // so_far: lines have the mean of all steps up to them, without the warm-up. The first line is of step 1,
  // however far the others are apart.
  enum Mean { speeds, times, medians_of_ranks, so_far } mean = speeds;
};

// What a format's file states. The window's members say what DLPerf's script counts.
struct FormatFacts {
  std::string_view name;       // "paddle_speed"
  std::string_view framework;  // as results/published/published.csv spells it: "PaddlePaddle"
  std::string_view source;     // what writes such lines and what reads them
  std::string_view model;      // of every log of the framework in it: "resnet50"; empty: the log's name says
  std::string_view example;    // a line
  std::string_view shape;      // see match_shape()
  std::string_view loss = "loss";  // stands before a line's loss, with blanks, ':' and '=' between
  Window default_window = {};
  std::int64_t index_step = 1;      // usual iterations of a line; 0: none are
  std::int64_t unlogged = 0;        // iterations before the first line
  std::int64_t lowest_warmup = 0;   // what the script needs
  std::int64_t first_counted = 0;   // the window begins with this iteration
  bool counts_last_warmup = false;  // the window begins with the last iteration of the warm-up
  bool has_no_end = false;          // lines behind --iters count as well: it only says how many to want
  bool shares_lines = false;        // with a format of the speeds, which is what `auto` takes
  bool is_last_choice = false;      // `auto` takes it where no other format fits
  bool repeats_lines = false;       // a process may write several lines for an index, with other metrics
  bool every_rank_writes = false;   // each rank of its node, or of all, may have written a line per index
  std::size_t decimals_at_end = 0;  // a line ends with its value, with so many: fewer show a torn line
  Rounding rounding = Rounding::numpy;
  SizeWords size_words = {};
  std::string_view images_line = {};   // shape of the line whose {count} is the images of an iteration
  std::string_view how_to_print = {};  // a line for every iteration: "-p 1"
  std::int64_t written_step = 0;       // iterations of each line that Plumbline writes; 0: it writes none
  std::int64_t first_written = 0;      // iterations before it have no line
  bool is_own_layout = false;          // Plumbline's first log can be read in it
  // A line that Plumbline writes, without its end, as fmt has it, with the names of LoggedInterval and of
  // LogFormat::line; it may be several, with ends between them.
  std::string_view writes = {};
  bool writes_per_rank = false;  // once for each rank
  std::string_view note = {};    // on all of its figures; one clause
  // What the published script does with a log that has other lines per index, or another step, than it
  // assumes; one clause. The figures here are right for such logs, too.
  std::string_view script_note = {};
  enum ScriptLines { any, one, one_per_node, one_per_rank } script_lines = any;
  std::int64_t script_step = 0;  // 0: any
  SpeedFacts speeds = {};
  std::optional<StampKind> stamps = {};  // lines have a stamp at the end of their last iteration, no speed
};
// The same lines, read for another figure.
constexpr FormatFacts read_otherwise(FormatFacts facts, std::string_view name, std::string_view source,
                                     std::optional<StampKind> stamps) {
  facts.name = name;
  facts.source = source;
  facts.shares_lines = true;
  facts.rounding = Rounding::python_averages;
  facts.written_step = 0;
  facts.stamps = stamps;
  return facts;
}

class LogFormat : public FormatFacts {
 public:
  constexpr explicit LogFormat(const FormatFacts& facts) : FormatFacts(facts) {}
  LogFormat(const LogFormat&) = delete;
  LogFormat& operator=(const LogFormat&) = delete;

  virtual constexpr ~LogFormat() {}  // defaulted, GCC 12 takes no constant of the class

  // `line`: without what its launcher put in front.
  LineReading read_line(std::string_view line, const RunSize& size) const;
  // Images per second from the values of as many indices, not rounded.
  double speed(const LogSeries& series, const Window& window, const RunSize& size) const;
  // Seconds of each iteration of the window, a value per index.
  std::vector<double> step_seconds(const LogSeries& series, const Window& window, const RunSize& size) const;
  // Its note, script_note where it applies, or that means count.
  std::string caveat(const LogSeries& series, const Window& window, const RunSize& size) const;
  // What FormatFacts::writes makes of an interval.
  std::string line(const LoggedInterval& interval, const RunSize& size) const;
  // Lines before the first that say the run's size, in the format's words.
  std::string header(const RunSize& size, std::string_view network) const;
  // Each line has the time of one iteration, whatever lies between it and the next.
  bool needs_every_iteration() const {
    return !stamps && speeds.seconds > 0 && index_step == 1 && shape.find("{mean}") == shape.npos;
  }
  // Without the size of its run a line tells no speed.
  bool needs_size() const {
    return stamps ? images_line.empty() : speeds.seconds > 0 || speeds.of != SpeedFacts::run;
  }
  // The clock has no year: its stamps fall at the end of one.
  bool clock_goes_around() const { return stamps == StampKind::of_glog; }

  std::int64_t least_warmup() const { return std::max(lowest_warmup, std::int64_t{stamps.has_value()}); }
  // A script of DLPerf reads such logs, and says which window counts.
  bool has_script() const { return index_step > 0 || !has_no_end; }
  bool is_table() const { return rounding == Rounding::python_table; }
  // Indices before the window's first iteration in a log that begins with `first_iteration`. Of lines further
  // apart than one iteration the first one ends what lies before the window.
  std::int64_t lead(std::int64_t first_iteration, std::int64_t step) const;
  // To 2 decimals, by the format's rounding.
  double round_average(double value) const;
  double round_median(double value) const;
  double speedup(double median, double base_median) const;  // of medians that aren't rounded yet

 protected:
  virtual Fit match(std::string_view line, Captured& captured) const {
    return match_shape(shape, line, captured);
  }
};

// All formats, in the order in which `auto` prefers them.
std::span<const LogFormat* const> log_formats();
// nullptr if there is none of that name.
const LogFormat* find_log_format(std::string_view name);

// The window of as many iterations as `wanted` has in whole lines of `step` iterations, with the shortest
// warm-up of at least wanted.warmup that the format can leave out; nothing if no line remains.
std::optional<Window> in_whole_lines(const LogFormat& format, const Window& wanted, std::int64_t step);
// "iterations 21 to 120"
std::string window_text(const LogFormat& format, const Window& window);

extern const LogFormat kPaddleSpeed, kPaddleTime, kMxnetRn50v1b, kMxnetArcface, kMxnetPartialFc,
    kNgcMxnetSpeed, kNgcMxnetTime, kNgcTfSpeed, kNgcTfTime, kNgcPytorchTime, kNgcPytorchSpeed, kPytorch,
    kTf2Speed, kTf2Time, kMindspore, kOneflowCnn, kOneflowFace, kPlsc, kMxnetNodes, kNgcMxnetDll, kPaddleIps,
    kArcFaceTorch, kMegatron, kOneflowTrain, kMllog, kMllogEpochs, kTfCnnBenchmarks;

}  // namespace plumb
