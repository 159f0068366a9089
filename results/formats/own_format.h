// A log format that a file describes, for --log-format FILE.toml:
//   line = '^step (?P<step>\d+) of \d+, loss (?P<loss>\S+), (?P<speed>\S+) images/s'
//   unit = "seconds"     of the group time, or "milliseconds"
//   of = "run"           whose images the speeds are, or "node" or "rank"
//   name, framework      in messages and comparisons
// `line` is a regular expression of RE2 with the named groups step and speed, or step and time (of a step, or
// of the samples where it has such a group); epoch, rank and loss may be there.
#pragma once

#include <filesystem>
#include <memory>

#include "results/formats/log_format.h"

namespace plumb {

constexpr const char* kOwnFormatEnd = ".toml";

// Throws Error(bad_data) that names the file and the key.
std::shared_ptr<const LogFormat> read_own_format(const std::filesystem::path& file);

}  // namespace plumb
