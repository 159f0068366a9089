// The folder of a case holds runs of one configuration. Its file ".plumbline-case" has that as one line of
// JSON, and is the lock for choosing the number of a run.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/output.h"
#include "results/formats/log_format.h"

namespace plumb {

struct LogCase {
  std::string model, precision;  // "resnet50", "fp32"
  std::int64_t batch_per_device = 1;
  std::int64_t image_size = 224;
  std::string data = "synthetic";  // "synthetic", "images" (a folder of them) or "batch" (a file)
  std::string head;                // head_options()
  std::map<std::string, std::string> settings;  // log_settings()
  int nodes = 1, devices_per_node = 1;

  RunSize size() const;
  std::string folder() const;  // "4n8g"
  std::string stem() const;    // "resnet50_b128_fp32_", of the names of its logs
};

// The options of a head, which tell runs of one backbone apart: "--head pfc --classes 85742 --embedding 512
// --sample-rate 0.1", then --prelu and --head-dtype where they are unusual; empty without a head.
std::string head_options(const nlohmann::ordered_json& config);

// The folder of a case, locked while this object lives. Without keep(), the destructor removes what the
// constructor made.
class CaseFolder {
 public:
  // `log_dir`: the option for messages. `path`: the folder, in or below it, whose configuration is `log_case`
  // or becomes it if no log is there. Throws Error(cannot_create) if the folder can't be made or written,
  // holds logs of another configuration, has a case file that is not a regular file, or if another program
  // holds the lock for longer than `patience`.
  CaseFolder(const Output& log_dir, const std::string& path, const LogCase& log_case,
             std::chrono::milliseconds patience = std::chrono::seconds(30));
  ~CaseFolder();
  CaseFolder(const CaseFolder&) = delete;
  CaseFolder& operator=(const CaseFolder&) = delete;

  const std::string& path() const { return path_; }
  void keep() { is_new_ = false; }

 private:
  explicit CaseFolder(const std::string& path) : path_(path) {}

  std::string path_;
  std::optional<OutputFolder> folder_;
  UniqueFd case_file_;
  bool is_new_ = false;
};

}  // namespace plumb
