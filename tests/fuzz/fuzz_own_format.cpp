// A format of one's own, as --log-format FILE.toml reads it, and behind a NUL a log in it.
#include <cmath>

#include "results/formats/own_format.h"
#include "results/formats/read_log.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

FUZZ_TARGET(own_format) {
  std::string_view log_text = text_of(data, size);
  const FileInMemory description(take_until(log_text, '\0'));
  const FileInMemory file(log_text);
  refuse_or([&] {
    const std::shared_ptr<const LogFormat> format = read_own_format(description.path());
    const LogReading log = read_log(*format, file.path(), format->default_window, {128, 1, 1});
    require(log.defect || std::isfinite(log.images_per_second), "a figure that is none passes");
  });
  return 0;
}
