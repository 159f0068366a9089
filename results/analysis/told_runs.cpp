// Lengths and settings of runs, from the results that they left near their logs.
#include <set>

#include "base/error.h"
#include "results/analysis/analyze.h"
#include "results/analysis/configuration.h"
#include "results/record/schema.h"

namespace plumb {
namespace {

// The log that a result calls `stated`: relative to the folder that the run was started in, which is one of
// those around its own, the nearest first. Empty if there is none.
fs::path stated_log(const fs::path& stated, const fs::path& run) {
  std::error_code error;
  for (fs::path folder = run; folder.has_relative_path(); folder = folder.parent_path())
    if (const fs::path log = fs::canonical(folder.parent_path() / stated, error); !error) return log;
  return {};
}

// Adds the runs in `folder`. Names of runs that share a log differ in their time only, so the latest is last.
void add_runs(const fs::path& folder, std::map<fs::path, ToldRun>& told) {
  std::error_code error;
  for (const fs::path& run : visible_entries(folder, error)) {
    if (!fs::is_regular_file(run / kResultFile, error)) continue;
    try {
      const RunRecord record = read_result_file(run / kResultFile).record;
      if (record.status != "ok") continue;
      for (const std::string& stated : record.log_files)
        if (const fs::path log = stated_log(stated, run); !log.empty())
          told[log] = {{record.iterations, record.warmup}, settings_text(log_settings(record))};
    } catch (const Error&) {  // a result that can't be read tells nothing
    }
  }
}

}  // namespace

std::map<fs::path, ToldRun> told_runs(const fs::path& log_dir) {
  std::error_code error;
  const fs::path logs = fs::canonical(log_dir, error);
  std::set<fs::path> folders;
  for (const fs::path& around : {logs.parent_path(), logs.parent_path().parent_path(), fs::path(".")})
    if (const fs::path runs = fs::canonical(around / "runs", error); !error) folders.insert(runs);
  std::map<fs::path, ToldRun> told;
  for (const fs::path& folder : folders) add_runs(folder, told);
  return told;
}

}  // namespace plumb
