// A log format that a file describes, for --log-format FILE.toml:
//   line = "step {iteration} of {any}, loss {any}, {value} images/s"    the shape of a line, see LineShape
//   value = "images/s"   or "seconds" or "milliseconds" of an iteration
//   of = "run"           whose images these are, or "node" or "rank"
//   loss = "loss"        stands before the loss
//   name, framework      in messages and comparisons
#pragma once

#include <filesystem>
#include <memory>

#include "results/formats/log_format.h"

namespace plumb {

constexpr const char* kOwnFormatEnd = ".toml";

// Throws Error(bad_data) that names the file and the key.
std::shared_ptr<const LogFormat> read_own_format(const std::filesystem::path& file);

}  // namespace plumb
