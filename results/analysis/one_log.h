// A single log, without the folders that say what it is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "results/analysis/log_tree.h"
#include "results/formats/read_log.h"

namespace plumb {

// What a single log's name doesn't say; empty or 0: not known.
struct OneLog {
  std::string case_name, precision;
  std::int64_t batch_per_device = 0;
};

// By its folder and file, if these have the layout of a folder of logs, else by what is told. Throws
// Error(usage) for a case that is none.
LogName name_of_log(const std::filesystem::path& file, const OneLog& told);

// Fills in what the log says itself. Throws Error(usage) if its format needs more, Error(bad_data) if the log
// is a mixture of formats.
void add_size(const LogFormat& format, LogFile& file, OtherFormats other_formats);

// Throws Error(bad_data) with the first line that looks like training if no line fits the format.
void refuse_misfit(const LogFormat& format, const LogFile& file);

}  // namespace plumb
