// FOLDER/sweep.json: which sweep a folder holds. What it has done is in the folder itself.
#pragma once

#include <filesystem>
#include <string>

#include "base/unique_fd.h"
#include "results/record/fields.h"

namespace plumb {

inline constexpr const char* kSweepSchema = "plumbline.sweep/2";

struct SweepIdentity {
  std::string schema = kSweepSchema;
  std::string plan;        // hash of plan_hash()
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
  // The folder stays locked until the programs that were started with it have ended, even if this process is
  // killed; another one waits for that for seconds.
  // Creates the folder and its sweep.json, or, with `resume`, goes on with one (there need be none). The
  // folder is this object's alone until it goes. Throws Error(cannot_create) if another sweep is at work in
  // the folder, or it holds anything but this sweep to be resumed; Error(bad_data) for a sweep.json that
  // can't be read.
  SweepLock(const std::filesystem::path& folder, const SweepIdentity& identity, bool resume);

 private:
  UniqueFd file_;
};

}  // namespace plumb
