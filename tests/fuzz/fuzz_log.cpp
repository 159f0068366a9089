// A log in every format. The first line holds the format's name, a blank, and a digit that selects the
// window and the run's size.
#include <algorithm>
#include <cmath>

#include "results/formats/read_log.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

namespace {

// Mutations rarely produce a name, so any other text also selects a format.
const LogFormat& format_named(std::string_view name) {
  const LogFormat* format = find_log_format(name);
  return format ? *format : *log_formats()[name.size() % log_formats().size()];
}

Window window_for(const LogFormat& format, unsigned choice) {
  if (choice == 0) return format.default_window;
  const std::int64_t step = std::max<std::int64_t>(format.index_step, 1);
  const std::int64_t warmup = std::max(format.lowest_warmup, format.stamps ? 2 * step : step);
  return {warmup + choice * step, warmup};
}

}  // namespace

FUZZ_TARGET(log) {
  std::string_view log_text = text_of(data, size);
  std::string_view choices = take_until(log_text, '\n');
  const LogFormat& format = format_named(take_until(choices, ' '));
  const unsigned choice = choices.empty() ? 0 : static_cast<unsigned char>(choices.front());
  const Window window = window_for(format, choice % 4);
  const RunSize run = choice & 4 ? RunSize{1024, 2, 4} : RunSize{128, 1, 1};
  const FileInMemory file(log_text);
  refuse_or([&] { recognize_format(file.path()); });
  refuse_or([&] {
    const LogReading log = read_log(format, file.path(), window, run);
    require(log.defect || std::isfinite(log.images_per_second), "a figure that is none passes");
  });
  return 0;
}
