// A folder of logs: <dir>/<N>n<G>g/<model>_b<BS>_<prec>_<run>.log, the layout that DLPerf's scripts and
// Plumbline share; or a single log, without the folders that say what it is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/paths.h"
#include "results/formats/read_log.h"
#include "results/record/note.h"

namespace plumb {

constexpr const char* kNoCase = "-";  // of a single log, where nothing says what it is

// The parts of a log's folder and file name.
struct LogName {
  std::string case_name;  // "4n8g"
  int nodes = 0, devices_per_node = 0;
  std::string model, precision;
  std::int64_t batch_per_device = 0, run = 0;  // batch 0: not known; run -1: a single log without such a name

  RunSize size() const {
    const bool is_known = batch_per_device > 0;
    const double images =
        static_cast<double>(nodes) * devices_per_node * static_cast<double>(batch_per_device);
    return {is_known ? images : 1, nodes, devices_per_node, is_known};
  }
};

// Nothing for other names. Numbers are plain decimals without leading zeros and at least 1 (run: 0).
std::optional<LogName> parse_log_name(std::string_view case_name, std::string_view file_name);
// True for "<N>n<G>g"; fills nodes and devices.
bool parse_case_name(std::string_view text, int& nodes, int& devices_per_node);

struct LogFile {
  fs::path path;
  LogName name;
};

struct LogTree {
  std::vector<LogFile> files;  // by nodes, devices, model, precision, batch, run
  std::vector<Note> bad;       // by path in `dir`: misnamed, unfinished (.log.part, never read), unreadable
};

// Names only; reads no file. Other files and hidden ones are no logs and are passed over. Throws
// Error(bad_data) if `dir` is not a folder or can't be listed.
LogTree find_logs(const fs::path& dir);

// What a single log's name doesn't say; empty or 0: not known.
struct OneLog {
  std::string case_name, precision;
  std::int64_t batch_per_device = 0;
};

// By its folder and file, if these have the layout of a folder of logs, else by what is told. Throws
// Error(usage) for a case that is none.
LogName name_of_log(const fs::path& file, const OneLog& told);

// Fills in what the log says itself. Throws Error(usage) if its format needs more, Error(bad_data) if the log
// is a mixture of formats.
void add_size(const LogFormat& format, LogFile& file, OtherFormats other_formats);

// Throws Error(bad_data) with the first line that looks like training if no line fits the format.
void refuse_misfit(const LogFormat& format, const LogFile& file);

}  // namespace plumb
