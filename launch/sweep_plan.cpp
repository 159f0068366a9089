#include "launch/sweep_plan.h"

#include <cstdlib>
#include <random>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "launch/toml_reader.h"
#include "models/catalogue.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostRuns = 100'000;
constexpr std::int64_t kMostDevices = 1024, kLargestBatch = std::int64_t{1} << 24,
                       kMostIterations = 10'000'000;
const std::vector<std::string> kPrecisions{"fp32", "tf32", "fp16", "bf16"};

// Options of the programs that a sweep gives itself, and the key that stands for them.
const std::vector<std::pair<std::string, std::string>> kSetBySweep{{"bs", "batch_sizes"},
                                                                   {"batch-per-device", "batch_sizes"},
                                                                   {"fp32", "precisions"},
                                                                   {"tf32", "precisions"},
                                                                   {"fp16", "precisions"},
                                                                   {"bf16", "precisions"},
                                                                   {"iters", "iterations"},
                                                                   {"warmup", "warmup"},
                                                                   {"nodes", "devices_per_node"},
                                                                   {"devices-per-node", "devices_per_node"},
                                                                   {"backbone", "model"},
                                                                   {"run", "repetitions of [sweep]"},
                                                                   {"log-dir", "plumbline sweep --out"},
                                                                   {"out", "plumbline sweep --out"}};

// With the fewest digits that read back the same.
std::string number_text(double number) {
  int digits = 1;
  while (digits < 17 && std::strtod(fmt::format("{:.{}g}", number, digits).c_str(), nullptr) != number)
    ++digits;
  return fmt::format("{:.{}g}", number, digits);
}

// The table `options` as words of a command line, sorted by name as TOML tables are.
std::vector<std::string> option_words(const TomlTable& options) {
  std::vector<std::string> words;
  for (const auto& [key, value] : options.raw()) {
    const std::string name(key.str());
    for (const auto& [taken, instead] : kSetBySweep)
      if (name == taken)
        options.refuse(name, fmt::format("option '{}' is the sweep's to give; use {}", name, instead));
    if (name.empty() || name.starts_with('-') ||
        name.find_first_of(std::string("= \0", 3)) != std::string::npos)
      options.refuse(name, fmt::format("'{}' is no option's name; write it without dashes in front", name));
    if (const auto* flag = value.as_boolean()) {
      if (!flag->get()) options.refuse(name, fmt::format("option '{}' is false; leave it out instead", name));
      words.push_back("--" + name);
      continue;
    }
    std::string text;
    if (value.is_integer())
      text = std::to_string(value.ref<std::int64_t>());
    else if (value.is_floating_point())
      text = number_text(value.ref<double>());
    else
      text = options.text(name, "");
    words.push_back(fmt::format("--{}={}", name, text));
  }
  return words;
}

// Which key of a case a message "option --bs: …" is about; empty: none.
std::string key_in(const std::string& message, const TomlTable& options) {
  constexpr std::string_view kBegin = "option --";
  if (!message.starts_with(kBegin)) return "";
  const std::string name =
      message.substr(kBegin.size(), message.find_first_of(": ", kBegin.size()) - kBegin.size());
  if (options.has(name)) return name;
  for (const auto& [taken, key] : kSetBySweep)
    if (name == taken) return key;
  return "";
}

struct Case {
  TomlTable table, options;
  std::string name, model, program;
  std::vector<std::string> words;
  std::vector<std::int64_t> devices, batches;
  std::vector<std::string> precisions;
};

Case read_case(const TomlTable& table) {
  table.refuse_others(
      {"name", "model", "devices_per_node", "batch_sizes", "precisions", "iterations", "warmup", "options"});
  Case c{.table = table, .options = table.table("options")};
  c.name = table.text("name", "");
  for (const char letter : c.name)
    if (!std::isalnum(static_cast<unsigned char>(letter)) && letter != '-' && letter != '.')
      table.refuse(
          "name",
          fmt::format("name '{}' becomes part of file names; use letters, digits, '-' and '.'", c.name));
  if (c.name.starts_with('.'))
    table.refuse("name", fmt::format("name '{}' begins with '.'; leave that out", c.name));
  std::vector<std::string> models;
  for (const Model& model : model_catalogue()) models.emplace_back(model.name);
  c.model = table.required_text("model", models);
  c.devices = table.required_integers("devices_per_node", {1, kMostDevices});
  c.batches = table.required_integers("batch_sizes", {1, kLargestBatch});
  c.precisions = table.required_texts("precisions", kPrecisions);
  const Model& model = *find_model(c.model);
  c.program = model.program;
  if (models_of(model.program).size() > 1)
    c.words.push_back(fmt::format("{}={}", model_option(model), c.model));
  for (const auto& [key, option] : {std::pair{"iterations", "--iters"}, {"warmup", "--warmup"}})
    if (table.has(key))
      c.words.push_back(fmt::format("{}={}", option, table.integer(key, 0, {0, kMostIterations})));
  for (std::string& word : option_words(c.options)) c.words.push_back(std::move(word));
  return c;
}

// The groups of a case, checked by the program's own option table.
std::vector<SweepGroup> groups_of(const Case& c, const CheckOptions& check) {
  std::vector<SweepGroup> groups;
  for (const std::int64_t batch : c.batches)
    for (const std::string& precision : c.precisions) {
      SweepGroup group{
          .name = fmt::format("{}{}{}_b{}_{}", c.name, c.name.empty() ? "" : "_", c.model, batch, precision),
          .program = c.program,
          .model = c.model,
          .precision = precision,
          .batch_per_device = batch,
          .options = {fmt::format("--bs={}", batch), "--" + precision}};
      group.options.insert(group.options.end(), c.words.begin(), c.words.end());
      try {
        group.length = check(group.program, group.options);
      } catch (const Error& error) {
        const std::string key = key_in(error.what(), c.options);
        (c.options.has(key) ? c.options : c.table).refuse(key, error.what());
      }
      groups.push_back(std::move(group));
    }
  return groups;
}

// Fisher and Yates; std::shuffle may differ between libraries, the engine's numbers don't.
template <typename Element>
void shuffle(std::vector<Element>& elements, std::mt19937_64& engine) {
  for (std::size_t left = elements.size(); left > 1; --left)
    std::swap(elements[left - 1], elements[engine() % left]);
}

}  // namespace

SweepPlan read_sweep_plan(std::string_view text, const std::string& file, const CheckOptions& check) {
  const toml::table parsed = parse_toml(text, file);
  const TomlTable root(parsed, "", file);
  for (const auto& [key, value] : parsed)
    if (const std::string_view name = key.str(); name != "sweep" && name != "launcher" && name != "case")
      root.refuse(
          name,
          fmt::format("'{}' is nothing a sweep file has; there are [sweep], [launcher] and [[case]]", name));
  SweepPlan plan;
  const TomlTable sweep = root.table("sweep"), launcher = root.table("launcher");
  sweep.refuse_others({"repetitions", "seed", "retries", "timeout_minutes"});
  plan.repetitions = static_cast<int>(sweep.integer("repetitions", plan.repetitions, {1, 99}));
  plan.seed = static_cast<std::uint64_t>(sweep.integer("seed", 0, {}));
  plan.retries = static_cast<int>(sweep.integer("retries", plan.retries, {0, 100}));
  plan.timeout_seconds = 60 * sweep.real("timeout_minutes", 0, 0, 1e6);
  launcher.refuse_others({"command", "arguments", "ranks_option", "programs"});
  plan.launcher.command = launcher.text("command", plan.launcher.command);
  plan.launcher.ranks_option = launcher.text("ranks_option", plan.launcher.ranks_option);
  plan.launcher.arguments = launcher.texts("arguments", plan.launcher.arguments);
  if (launcher.has("programs"))
    plan.launcher.programs = fs::path(file).parent_path() / launcher.text("programs", "");

  std::vector<SweepRun> cases;  // of one repetition
  std::set<std::string> names;
  for (const TomlTable& table : root.tables("case")) {
    const Case c = read_case(table);
    const std::size_t more = c.batches.size() * c.precisions.size() * c.devices.size();
    if ((cases.size() + more) * static_cast<std::size_t>(plan.repetitions) > kMostRuns)
      table.refuse("", fmt::format("with this case the sweep has more than {} runs; leave out batch sizes, "
                                   "precisions or repetitions",
                                   kMostRuns));
    for (SweepGroup& group : groups_of(c, check)) {
      if (!names.insert(group.name).second)
        table.refuse("", group.name + " has been in a case before; give one of the two another 'name'");
      for (const std::int64_t devices : c.devices)
        cases.push_back({.group = plan.groups.size(), .devices = static_cast<int>(devices)});
      plan.groups.push_back(std::move(group));
    }
  }
  std::mt19937_64 engine(plan.seed);
  for (int repetition = 1; repetition <= plan.repetitions; ++repetition) {
    shuffle(cases, engine);
    for (SweepRun run : cases) {
      run.repetition = repetition;
      run.name = fmt::format("{}_{}_{}", plan.groups[run.group].name, run.case_name(), repetition);
      plan.runs.push_back(std::move(run));
    }
  }
  return plan;
}

fs::path SweepFolder::failed(const SweepRun& run, int attempt) const {
  return path / "failed" / fmt::format("{}_attempt{}", run.name, attempt);
}

fs::path SweepFolder::output(const SweepRun& run, int attempt) const {
  return path / "output" / fmt::format("{}_attempt{}.txt", run.name, attempt);
}

fs::path SweepFolder::log(const SweepPlan& plan, const SweepRun& run) const {
  const SweepGroup& group = plan.groups[run.group];
  return logs(group) / run.case_name() /
         fmt::format("{}_b{}_{}_{}.log", group.model, group.batch_per_device, group.precision,
                     run.repetition);
}

std::vector<std::string> command_of(const SweepPlan& plan, const SweepRun& run, const SweepFolder& folder) {
  const SweepGroup& group = plan.groups[run.group];
  const Launcher& launcher = plan.launcher;
  std::vector<std::string> words{launcher.command};
  words.insert(words.end(), launcher.arguments.begin(), launcher.arguments.end());
  words.insert(words.end(), {launcher.ranks_option, std::to_string(run.devices),
                             (launcher.programs / group.program).string()});
  words.insert(words.end(), group.options.begin(), group.options.end());
  words.insert(words.end(),
               {"--nodes=1", fmt::format("--devices-per-node={}", run.devices),
                fmt::format("--run={}", run.repetition), "--log-dir=" + folder.logs(group).string(),
                "--out=" + folder.work(run).string()});
  return words;
}

std::string shell_text(const std::vector<std::string>& command) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./,:+@%";
  std::string text;
  for (const std::string& word : command) {
    const bool is_plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
    text += fmt::format("{}{}", text.empty() ? "" : " ",
                        is_plain ? word : fmt::format("'{}'", replaced(word, '\'', "'\\''")));
  }
  return text;
}

std::uint64_t plan_hash(const SweepPlan& plan) {
  std::uint64_t hash = kFnvOffset;
  SweepPlan anywhere = plan;  // the programs may have moved
  anywhere.launcher.programs.clear();
  for (const SweepRun& run : anywhere.runs)
    hash = fnv1a(fmt::format("{}\n{}\n", run.name, shell_text(command_of(anywhere, run, {}))), hash);
  return hash;
}

}  // namespace plumb
