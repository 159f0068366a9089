// The folder of a case holds runs of one configuration. Its file ".plumbline-case" has that as one line of
// JSON.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

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

// Makes `log_case` the configuration of the folders, unless it is already. Call it when each folder holds
// this run's log, `own_log`, so that other runs see it. The first folder is the same in all runs and stays
// locked meanwhile. `log_dir`: the option for messages. Throws Error(cannot_create) if a folder holds
// finished logs of another configuration, if a run of another configuration is writing there, if another
// program holds the lock for 30 s, or if a case file can't be written or is not a regular file.
void settle_case(const Output& log_dir, const std::vector<std::string>& folders, const LogCase& log_case,
                 const std::string& own_log);

}  // namespace plumb
