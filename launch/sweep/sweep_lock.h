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

class SweepLock {
 public:
  // Creates the folder and its sweep.json; with `resume` it also continues a sweep that is there. The folder
  // stays locked until this object and all programs that it started have ended, even if this process is
  // killed. Another sweep waits 5 s for that. Throws Error(cannot_create) if another sweep uses the folder or
  // the folder holds something else; Error(bad_data) if sweep.json can't be read.
  SweepLock(const std::filesystem::path& folder, const SweepIdentity& identity, bool resume);

 private:
  UniqueFd file_;
};

}  // namespace plumb
