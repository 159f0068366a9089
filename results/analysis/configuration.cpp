#include "results/analysis/configuration.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/option_defaults.h"
#include "base/text.h"
#include "models/catalogue.h"
#include "results/record/gpu_name.h"

namespace plumb {
namespace {

constexpr const char *kNodes = "nodes", *kDevicesPerNode = "devices per node";

// 2.0 is "2", texts stand without quotes.
std::string config_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  std::string text = value.dump();
  if (value.is_number_float() && text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

// Empty where the key is missing or null.
std::string config_text(const Json& config, const char* key) {
  const auto value = config.find(key);
  return value == config.end() || value->is_null() ? "" : config_text(*value);
}

std::string data_of(const Json& config) {
  if (!config_text(config, "batch").empty()) return "batch file";
  std::string path = config_text(config, "data");
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

std::string head_of(const Json& config) {
  const std::string head = config_text(config, "head"), rate = config_text(config, "sample_rate");
  return head.empty() ? "none" : head == "pfc" && !rate.empty() ? head + " " + rate : head;
}

// Whether neither a head's options nor names of logs tell this one of the options that change the work.
bool is_untold_work(const std::string& key) {
  return key == "optimizer" || key == "dropout" || key == "loss_scale";
}

// Options that change the work of a step. A head in half precision and loss scaling exist in half precision
// only.
std::map<std::string, std::string> work_options(const RunRecord& record) {
  std::vector<const char*> keys{"optimizer", "embedding", "prelu", "dropout"};
  if (record.precision.ends_with("16")) keys.push_back("head_dtype");
  if (record.precision == "fp16") keys.push_back("loss_scale");
  std::map<std::string, std::string> options;
  for (const char* key : keys)
    if (const std::string value = config_text(record.config, key); !value.empty()) options[key] = value;
  return options;
}

// Values that options have unless they are given; of models, those of any.
std::set<std::pair<std::string, std::string>> usual_values() {
  const OptionDefaults& d = kDefaults;
  std::set<std::pair<std::string, std::string>> usual{{"optimizer", config_text(d.optimizer)},
                                                      {"prelu", config_text(d.prelu)},
                                                      {"head_dtype", config_text(d.head_dtype)},
                                                      {"loss_scale", config_text(d.loss_scale)},
                                                      {"bucket_mb", config_text(d.bucket_mb)},
                                                      {"overlap", config_text(d.overlap)},
                                                      {"reduce_dtype", config_text(d.reduce_dtype)},
                                                      {"cuda_graph", config_text(d.cuda_graph)},
                                                      {"fusion", config_text(d.fusion)},
                                                      {"conv", config_text(d.conv)},
                                                      {"autotune", config_text(d.autotune)},
                                                      {"share_gpu", config_text(d.share_gpu)},
                                                      {"deterministic", config_text(d.deterministic)},
                                                      {"seconds", config_text(d.seconds)}};
  for (const Model& model : model_catalogue()) {
    if (!model.margin_head) continue;
    usual.emplace("embedding", config_text(model.embedding));
    usual.emplace("dropout", config_text(model.dropout));
  }
  return usual;
}

// Notes the iterations of a run that has neither --seconds nor its model's default length.
void add_length(const RunRecord& record, std::map<std::string, std::string>& settings) {
  const Model* known = find_model(network_of_log(record.model));
  const Recipe usual = known == nullptr ? Recipe{} : known->recipe;
  const bool is_usual_length = record.iterations == usual.iterations && record.warmup == usual.warmup;
  if (!is_usual_length && !settings.contains("seconds"))
    settings["iterations"] = fmt::format("{}, {} of them warm-up", record.iterations, record.warmup);
}

// A single rank does so over a communicator that was asked for by name ("auto" otherwise). Older results name
// one that they didn't use, and have waited for nothing.
bool exchanges_gradients(const RunRecord& record) {
  if (record.world_size > 1) return true;
  return config_text(record.config, "comm") != "auto" && record.exposed_communication_seconds > 0;
}

std::map<std::string, std::string> settings_of(const RunRecord& record, bool exchanges) {
  std::vector<const char*> keys{"fusion", "conv", "cuda_graph", "deterministic", "seconds"};
  if (record.device == "cuda") keys.push_back("autotune");
  if (exchanges) keys.insert(keys.end(), {"bucket_mb", "overlap", "reduce_dtype", "share_gpu"});
  std::map<std::string, std::string> settings;
  for (const char* key : keys)
    if (const std::string value = config_text(record.config, key); !value.empty() && !is_usual(key, value))
      settings[key] = value;
  const std::string comm = config_text(record.config, "comm");
  if (exchanges && (record.world_size == 1 || (record.device == "cuda" && comm == "mpi")))
    settings["comm"] = comm;
  add_length(record, settings);
  return settings;
}

std::string spaced(const std::string& key) {
  return replaced(key, '_', " ");
}

}  // namespace

bool is_usual(const std::string& key, const std::string& value) {
  static const std::set<std::pair<std::string, std::string>> kUsual = usual_values();
  return kUsual.contains({key, value});
}

std::vector<Difference> differences(const Configuration& first, const Configuration& second,
                                    bool device_count) {
  std::vector<Difference> found;
  const auto add = [&](const std::string& what, const std::string& a, const std::string& b) {
    if (!a.empty() && !b.empty() && a != b) found.push_back({what, a, b});
  };
  const auto add_number = [&](const char* what, std::int64_t a, std::int64_t b) {
    if (a != 0 && b != 0) add(what, std::to_string(a), std::to_string(b));
  };
  add("model", first.model, second.model);
  add("precision", first.precision, second.precision);
  if (!is_same_device(first.device, second.device)) add("device", first.device, second.device);
  add("data", first.data, second.data);
  add_number("batch per device", first.batch_per_device, second.batch_per_device);
  if (device_count) {
    add_number(kNodes, first.nodes, second.nodes);
    add_number(kDevicesPerNode, first.devices_per_node, second.devices_per_node);
  }
  add_number("image size", first.image_size, second.image_size);
  add("head", first.head, second.head);
  add_number("classes", first.classes, second.classes);
  for (const auto& [key, value] : first.options)
    if (const auto other = second.options.find(key); other != second.options.end())
      add(spaced(key), value, other->second);
  return found;
}

std::size_t distance(const std::vector<Difference>& differences) {
  constexpr std::size_t kOtherCase = 100;
  const bool other_case = std::ranges::any_of(differences, [](const Difference& difference) {
    return difference.what == kNodes || difference.what == kDevicesPerNode;
  });
  return differences.size() + (other_case ? kOtherCase : 0);
}

std::vector<Difference> setting_differences(const Configuration& first, const Configuration& second) {
  std::map<std::string, Difference> by_key;
  const auto set = [&](const Configuration& side, std::string Difference::*value) {
    for (const auto& [key, text] : side.settings)
      by_key.try_emplace(key, Difference{spaced(key), "as usual", "as usual"}).first->second.*value = text;
  };
  set(first, &Difference::first);
  set(second, &Difference::second);
  std::vector<Difference> found;
  for (const auto& [key, difference] : by_key)
    if (difference.first != difference.second) found.push_back(difference);
  return found;
}

Json sides_json(const std::vector<Difference>& differences) {
  Json json = Json::object();
  for (const Difference& one : differences) json[one.what] = {one.first, one.second};
  return json;
}

std::string differences_text(const std::vector<Difference>& differences) {
  std::string text;
  for (const Difference& difference : differences)
    append_part(text, fmt::format("{} {} against {}", difference.what, difference.first, difference.second));
  return text;
}

std::string configuration_text(const Configuration& configuration) {
  const Configuration& c = configuration;
  std::string text = fmt::format("{} {}", c.model, c.precision);
  const auto add = [&](const std::string& part) { append_part(text, part); };
  if (c.batch_per_device > 0) add(fmt::format("batch {} per device", c.batch_per_device));
  if (c.nodes > 0 && c.devices_per_node > 0) add(c.case_name());
  if (!c.device.empty()) add(c.device);
  if (!c.data.empty()) add(c.data);
  if (c.image_size != 0 &&
      std::ranges::find(model_catalogue(), c.image_size, &Model::image_size) == model_catalogue().end())
    add(fmt::format("{} px", c.image_size));
  if (!c.head.empty() && c.head != "none")
    add(fmt::format("head {}{}", c.head, c.classes > 0 ? fmt::format(" of {} classes", c.classes) : ""));
  for (const auto* options : {&c.options, &c.settings})
    for (const auto& [key, value] : *options)
      if (!is_usual(key, value)) add(spaced(key) + " " + value);
  return text;
}

Configuration configuration_of(const RunRecord& record) {
  const std::string& device = record.device_name;
  return {.framework = "Plumbline",
          .model = network_of_log(record.model),
          .precision = record.precision,
          // Without the versions of its software: comparing those is what runs are for.
          .device = device.substr(0, std::min(device.find(" (sm_"), device.find(", oneDNN"))),
          .data = data_of(record.config),
          .batch_per_device = record.batch_per_device,
          .nodes = record.nodes,
          .devices_per_node = record.devices_per_node,
          .image_size = value_or<std::int64_t>(record.config, "image_size"),
          .head = head_of(record.config),
          .classes = value_or<std::int64_t>(record.config, "classes"),
          .options = work_options(record),
          .settings = settings_of(record, exchanges_gradients(record))};
}

std::map<std::string, std::string> log_settings(const RunRecord& record, std::optional<bool> exchanges) {
  std::map<std::string, std::string> settings =
      settings_of(record, exchanges.value_or(exchanges_gradients(record)));
  for (const auto& [key, value] : work_options(record))
    if (is_untold_work(key) && !is_usual(key, value)) settings[key] = value;
  settings.erase("iterations");
  settings.erase("seconds");
  const std::string threads = config_text(record.config, "threads");
  if (record.device == "cpu" && !threads.empty()) settings["threads"] = threads;
  return settings;
}

void add_log_setting(const std::string& key, const std::string& value, Configuration& configuration) {
  if (key == "threads") return;  // of the device
  (is_untold_work(key) ? configuration.options : configuration.settings)[key] = value;
}

std::string settings_text(const std::map<std::string, std::string>& settings) {
  std::string text;
  for (const auto& [key, value] : settings)
    append_part(text, fmt::format("--{} {}", replaced(key, '_', "-"), value), " ");
  return text;
}

Configuration configuration_of(const LogName& name) {
  const bool knows_case = name.case_name != kNoCase;
  return {.framework = "Plumbline",
          .model = name.run < 0 ? "" : network_of_log(name.model),
          .precision = lower_case(name.precision),
          .batch_per_device = name.batch_per_device,
          .nodes = knows_case ? name.nodes : 0,
          .devices_per_node = knows_case ? name.devices_per_node : 0};
}

Configuration configuration_of(const LogName& name, const LogFormat& format) {
  Configuration configuration = configuration_of(name);
  configuration.framework = format.framework;
  if (format.model.empty()) return configuration;
  const Model *named = find_model(configuration.model), *own = find_model(comparable_model(format.model));
  const bool is_own = own != nullptr && configuration.model == own->short_name;
  if (named != nullptr && named->margin_head && !is_own)
    throw Error(ExitCode::bad_data, "it is named after {}, but logs of {} are of {}", named->name,
                format.name, format.model);
  configuration.model = format.model;
  return configuration;
}

}  // namespace plumb
