// A log in every dialect. The first line holds the dialect's name, a blank, and a digit that selects the
// window and the run's size.
#include <algorithm>
#include <cmath>

#include "results/dialects/dialect.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

namespace {

// Mutations rarely produce a name, so any other text also selects a dialect.
const Dialect& dialect_named(std::string_view name) {
  const Dialect* dialect = find_dialect(name);
  return dialect ? *dialect : *dialects()[name.size() % dialects().size()];
}

Window window_for(const Dialect& dialect, unsigned choice) {
  if (choice == 0) return dialect.default_window;
  const std::int64_t step = dialect.index_step;
  const std::int64_t warmup = std::max(dialect.lowest_warmup, dialect.has_stamps() ? 2 * step : step);
  return {warmup + choice * step, warmup};
}

}  // namespace

FUZZ_TARGET(log) {
  std::string_view log_text = text_of(data, size);
  std::string_view choices = take_until(log_text, '\n');
  const Dialect& dialect = dialect_named(take_until(choices, ' '));
  const unsigned choice = choices.empty() ? 0 : static_cast<unsigned char>(choices.front());
  const Window window = window_for(dialect, choice % 4);
  const RunSize run = choice & 4 ? RunSize{1024, 2, 4} : RunSize{128, 1, 1};
  const FileInMemory file(log_text);
  refuse_or([&] { recognise_dialect(file.path()); });
  refuse_or([&] {
    const LogReading log = read_log(dialect, file.path(), window, run);
    require(log.defect || std::isfinite(log.images_per_second), "a figure that is none passes");
  });
  return 0;
}
