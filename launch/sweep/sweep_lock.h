// FOLDER/sweep.json identifies the sweep in a folder; the runs themselves show what is done.
#pragma once

#include <filesystem>
#include <string>

#include "base/unique_fd.h"
#include "results/record/fields.h"

namespace plumb {

extern const Document kSweepDocument;

struct SweepIdentity {
  std::string schema = kSweepDocument.name;
  std::string plan;        // plan_hash()
  std::string build;       // build_hash(): runs of two builds are not one measurement
  std::string file, toml;  // for people

  static void fields(auto& self, auto&& each) {
    each("schema", self.schema), each("plan", self.plan, Field{"hash of the list of runs"});
    each("build", self.build, Field{"hash of the programs"});
    each("file", self.file, Field{"the sweep file"}), each("toml", self.toml, Field{"its text"});
  }
};

// Creates the folder and its sweep.json; with `resume` it also continues a sweep that is there. The folder is
// locked as long as the descriptor is open here or in a program that this process started: another sweep
// waits 5 s for a killed one's programs. Throws Error(cannot_create) if the folder is in use or holds
// something else; Error(bad_data) if sweep.json can't be read.
UniqueFd claim_sweep_folder(const std::filesystem::path& folder, const SweepIdentity& identity, bool resume);

}  // namespace plumb
