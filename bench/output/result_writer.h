// The folder of one run under --output: result.json, env.json, program.json. Never an old one, never
// overwritten by another run.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/output.h"
#include "results/record/schema.h"

namespace plumb {

// "resnet50_1n2g_b8_fp32_20250102-235953", local time.
std::string run_folder_name(const RunRecord& record, std::chrono::system_clock::time_point start);

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
  void write_result(const RunRecord& record, OnDisk on_disk = OnDisk::now) const;
  void remove_result() const;
  // Writes or replaces another file of the folder, likewise: "env.json", "program.json".
  void write_json(const std::string& file, const nlohmann::ordered_json& json) const;
  void write_text(const std::string& file, const std::string& text,  // "tuning.csv"
                  OnDisk on_disk = OnDisk::now) const;

 private:
  Output out_;
  OutputFolder out_folder_;
  std::string folder_;
  UniqueFd lock_;
};

}  // namespace plumb
