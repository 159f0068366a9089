// The configuration of a measured throughput: only equal ones may be compared.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "results/analysis/log_tree.h"
#include "results/record/schema.h"

namespace plumb {

// Empty or 0: not known, which differs from nothing.
struct Configuration {
  std::string framework;  // "Plumbline", "PyTorch", … as published.csv spells it
  std::string model;      // "resnet50", "r50", "r100", "y1", "rn50v1b", …
  std::string precision;  // "fp32", "tf32", "fp16" (mixed), "bf16", "pure fp16"
  std::string device;     // "NVIDIA H200", "V100-SXM2-16GB"
  std::string data;       // "synthetic", "ImageNet", "face_emore", …
  std::int64_t batch_per_device = 0;
  int nodes = 0, devices_per_node = 0;
  std::int64_t image_size = 0;  // pixels
  std::string head;             // "mp", "dp", "pfc 0.1"; "none" for models without class centers
  std::int64_t classes = 0;
  // Other options that change the work of a step, by name: "optimizer" -> "nag".
  std::map<std::string, std::string> options;
  // How that work was done, where it isn't as usual: "overlap" -> "false", "iterations" -> "10, 3 of them
  // warm-up". No difference of configuration, as the framework is none, but runs that differ here are no
  // repetitions of each other.
  std::map<std::string, std::string> settings;

  bool operator==(const Configuration&) const = default;
  int devices() const { return nodes * devices_per_node; }
  std::string case_name() const { return fmt::format("{}n{}g", nodes, devices_per_node); }  // "4n8g"
  static void fields(auto& self, auto&& each) {  // without the framework
    const Field null{.null_if_nothing = true};
    each("model", self.model, null), each("precision", self.precision, null),
        each("device", self.device, null);
    each("data", self.data, null), each("batch_per_device", self.batch_per_device, null);
    each("nodes", self.nodes, null), each("devices_per_node", self.devices_per_node, null);
    each("image_size", self.image_size, null), each("head", self.head, null),
        each("classes", self.classes, null);
    each("options", self.options), each("settings", self.settings);
  }
};

struct Difference {
  std::string what;  // "batch per device"
  std::string first, second;

  bool operator==(const Difference&) const = default;
  static void fields(auto& self, auto&& each) {
    each("what", self.what), each("first", self.first), each("second", self.second);
  }
};

// {"name": ["first side", "second side"], …}
Json sides_json(const std::vector<Difference>& differences);

// In the order of the members above, without framework and settings: comparisons are made for those.
// `device_count` false leaves nodes and devices out too, for speedups and scaling curves.
std::vector<Difference> differences(const Configuration& first, const Configuration& second,
                                    bool device_count = true);
// How far apart configurations with these differences are: another number of devices is further than all else
// together.
std::size_t distance(const std::vector<Difference>& differences);
// Differences of the settings; one that a side doesn't name is "as usual".
std::vector<Difference> setting_differences(const Configuration& first, const Configuration& second);
// "batch per device 128 against 256, precision fp16 against fp32"; empty without differences.
std::string differences_text(const std::vector<Difference>& differences);
// "resnet50 fp16, batch 128 per device, 4n8g, NVIDIA H200, synthetic", then unusual options and settings.
std::string configuration_text(const Configuration& configuration);

// Whether an option has the value that it has unless another one is given: "fusion" "auto".
bool is_usual(const std::string& key, const std::string& value);

Configuration configuration_of(const RunRecord& record);
// What tells runs apart that a folder of logs may not mix, beside what logs are named after: the settings but
// for the length, which their lines tell, unusual options that change the work, and on CPUs "threads".
// `exchanges`: whether gradients are exchanged, which a run that has begun can't tell by itself.
std::map<std::string, std::string> log_settings(const RunRecord& record, std::optional<bool> exchanges = {});
// One of them into the configuration of a log.
void add_log_setting(const std::string& key, const std::string& value, Configuration& configuration);
// "--bucket-mb 4 --threads 2"; empty without any.
std::string settings_text(const std::map<std::string, std::string>& settings);
// A log that Plumbline wrote, or a single one whose name says nothing: model, precision, batch, nodes and
// devices come from its name.
Configuration configuration_of(const LogName& name);
// A framework's log: the format gives the framework, and the model if it has one, because DLPerf's scripts
// name logs of ResNet-50 both "r50" and "rn50". Otherwise other names of a model ("iresnet50") become one
// ("r50"). Throws Error(bad_data) with a clause if the name is that of a model that the format can't have.
Configuration configuration_of(const LogName& name, const LogFormat& format);

}  // namespace plumb
