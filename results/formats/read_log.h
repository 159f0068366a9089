// Logs read with every check that they are whole, and the format that a log is in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "results/formats/log_format.h"
#include "results/record/note.h"

namespace plumb {

// Part of a log: lines of other epochs, and of iterations outside `from` to `to`, are passed over.
struct Stretch {
  std::optional<std::int64_t> epoch, from, to;

  bool is_whole() const { return !epoch && !from && !to; }
  bool holds(std::int64_t of_epoch, std::int64_t iteration) const {
    return of_epoch == epoch.value_or(of_epoch) && iteration >= from.value_or(iteration) &&
           iteration <= to.value_or(iteration);
  }
};

// A log read with every check: one line per iteration (or as many as the format has), in order, nothing
// missing, each value usable. Lines of another shape are passed over.
struct LogReading {
  double images_per_second = 0;  // rounded to 2 decimals, but see Rounding
  std::optional<Note> defect;    // set: the figure is none. Kinds: "unreadable", "truncated", "mixed", …
  std::string caveat;            // see LogFormat::caveat
  std::string stall;             // see stall_text; empty: no step of the window stalled
  std::string change;            // a lasting fall or rise of the speed; empty: none
  std::string divergence;        // see divergence_text
  std::int64_t bytes = 0;        // with `hash`: two equal files are one file copied
  std::uint64_t hash = 0;
};
// other_formats: whether lines of another format make it a mixture, unless somebody chose the format.
enum class OtherFormats { pass_over, refuse };
LogReading read_log(const LogFormat& format, const std::filesystem::path& file, const Window& window,
                    const RunSize& size, const Stretch& stretch = {},
                    OtherFormats other_formats = OtherFormats::pass_over);

// The sizes that a log states itself, where its format has words for them.
struct StatedSize {
  std::optional<std::int64_t> batch_per_device, devices_per_node, nodes;
};
StatedSize stated_size(const LogFormat& format, const std::filesystem::path& file);

// The format that most of the first lines of a file fit; of several the first of log_formats().
struct Recognition {
  const LogFormat* format = nullptr;   // null: no line fits any
  const LogFormat* as_well = nullptr;  // another one that as many lines fit
  std::string training_line;           // then the first line that looks like training
  bool has_lines = false;
};
// A number, and two of the words that lines of training have.
bool looks_like_training(std::string_view text);
Recognition recognize_format(const std::filesystem::path& file);

}  // namespace plumb
