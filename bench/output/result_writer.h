// The result of a run: its folder under --output with result.json, env.json, program.json, and the table on
// stdout.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/output.h"
#include "results/published/reference.h"
#include "results/record/schema.h"

namespace plumb {

// "resnet50_1n2g_b8_fp32_20250102-235953", local time.
std::string run_folder_name(const RunRecord& record, std::chrono::system_clock::time_point start);

// A new folder, never an old one, never overwritten by another run.
class ResultWriter {
 public:
  // Makes `out_dir`/`name`_<n>, n the first that is free, and writes result.json with `record` marked as
  // failed, so that one is there whatever happens. Holds a shared lock on the folder (flock), by which a
  // postmortem sees that the run lives. Throws Error(cannot_create).
  ResultWriter(const std::string& out_dir, const std::string& name, RunRecord record);

  const std::string& folder() const { return folder_; }

  // Removes the new folders, those above included: for a run that never began.
  void discard();

  // Replaces result.json at once and whole. Throws Error(io_error).
  void write_result(const RunRecord& record) const;
  void remove_result() const;
  // Writes or replaces another file of the folder, likewise: "env.json", "program.json".
  void write_json(const std::string& file, const nlohmann::ordered_json& json) const;
  void write_text(const std::string& file, const std::string& text) const;  // "tuning.csv"

 private:
  Output out_;
  OutputFolder out_folder_;
  std::string folder_;
  UniqueFd lock_;
};

// The table of a run, of 80 columns; one that isn't ok has its reason, and no throughput.
std::string summary_table(const RunRecord& record, const std::vector<ReferenceSpeed>& references);

// The table, or with `as_json` the object of result.json, to stdout.
void print_result(const RunRecord& record, const std::vector<ReferenceSpeed>& references, bool as_json);

}  // namespace plumb
