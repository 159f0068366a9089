#include "launch/sweep/sweep_plan.h"

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "launch/sweep/toml_reader.h"
#include "models/catalogue.h"
#include "results/analysis/log_tree.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostRuns = 100'000;
constexpr std::int64_t kMostNodes = 10'000, kMostDevices = 1024, kLargestBatch = std::int64_t{1} << 24,
                       kMostIterations = 10'000'000;
const std::vector<std::string> kPrecisions{"fp32", "tf32", "fp16", "bf16"};

// Options of the programs that a sweep gives itself, by the key that stands for them.
const std::vector<std::pair<std::string, std::vector<std::string>>> kSetBySweep{
    {"batch_sizes", {"bs", "batch-per-device"}},
    {"precisions", kPrecisions},
    {"iterations", {"iters"}},
    {"warmup", {"warmup"}},
    {"nodes", {"nodes"}},
    {"devices_per_node", {"devices-per-node"}},
    {"model", {"backbone"}},
    {"repetitions of [sweep]", {"run"}},
    {"plumbline sweep --output", {"log-dir", "out", "output"}}};

// The key that stands for an option; empty: it is free.
std::string key_instead_of(const std::string& option) {
  for (const auto& [key, options] : kSetBySweep)
    if (std::ranges::count(options, option) > 0) return key;
  return "";
}

// The table `options` as words of a command line, sorted by name as TOML tables are.
std::vector<std::string> option_words(const TomlTable& options) {
  std::vector<std::string> words;
  for (const auto& [key, value] : options.raw()) {
    const std::string name(key.str());
    if (const std::string instead = key_instead_of(name); !instead.empty())
      options.refuse(name, fmt::format("option '{}' is set by the sweep; use {}", name, instead));
    if (name.empty() || name.starts_with('-') ||
        name.find_first_of(std::string("= \0", 3)) != std::string::npos)
      options.refuse(name, fmt::format("'{}' is not an option's name; write it without dashes", name));
    if (const auto* flag = value.as_boolean()) {
      if (!flag->get()) options.refuse(name, fmt::format("option '{}' is false; leave it out instead", name));
      words.push_back("--" + name);
      continue;
    }
    std::string text;
    if (value.is_integer())
      text = std::to_string(value.ref<std::int64_t>());
    else if (value.is_floating_point())
      text = fmt::format("{}", value.ref<double>());  // the fewest digits that read back the same
    else
      text = options.text(name, "");
    words.push_back(fmt::format("--{}={}", name, text));
  }
  return words;
}

// Which key of a case a message "--bs 0: …" is about; empty: none.
std::string key_in(const std::string& message, const TomlTable& options) {
  constexpr std::string_view kBegin = "--";
  if (!message.starts_with(kBegin)) return "";
  const std::string name =
      message.substr(kBegin.size(), message.find_first_of(": ", kBegin.size()) - kBegin.size());
  return options.has(name) ? name : key_instead_of(name);
}

// Words of mpirun and srun that launch/run gives itself.
constexpr std::array<std::string_view, 17> kSetByLaunchRun{
    "-np",       "--np",       "-n",           "-c",
    "-N",        "-H",         "-host",        "--host",
    "-hostfile", "--hostfile", "-machinefile", "--machinefile",
    "--map-by",  "--nodes",    "--ntasks",     "--nodelist",
    "-w"};

SweepHosts read_hosts(const TomlTable& table, const std::string& file) {
  SweepHosts hosts{.list = table.text("hosts", "")};
  if (table.has("hostfile")) hosts.file = fs::path(file).parent_path() / table.text("hostfile", "");
  if (!hosts.list.empty() && !hosts.file.empty())
    table.refuse("hostfile", "'hosts' and 'hostfile' exclude each other; leave one of them out");
  if (hosts.list.starts_with('-'))
    table.refuse("hosts",
                 fmt::format("'{}': expected a list of hosts; write node[1-4] or n1,n2", hosts.list));
  const std::string command = table.text("command", kLaunchRun);
  if (command == "mpirun" || command == "srun")
    hosts.via = command;
  else if (command != kLaunchRun)
    table.refuse("command",
                 fmt::format("'{}' does not accept hosts; use mpirun, srun, or {}, which chooses one",
                             command, kLaunchRun));
  if (table.has("ranks_option"))
    table.refuse("ranks_option",
                 "'ranks_option' and hosts exclude each other, as every device gets a rank; leave it out");
  for (const std::string& word : table.texts("arguments", {}))
    if (std::ranges::find(kSetByLaunchRun, word.substr(0, word.find('='))) != kSetByLaunchRun.end())
      table.refuse(
          "arguments",
          fmt::format("argument '{}' is set by the sweep; use hosts, nodes and devices_per_node", word));
  return hosts;
}

SweepLauncher read_launcher(const TomlTable& table, const std::string& file) {
  table.refuse_others({"command", "arguments", "ranks_option", "programs", "hosts", "hostfile"});
  SweepLauncher launcher;
  launcher.command = table.text("command", launcher.command);
  if (table.has("hosts") || table.has("hostfile") || launcher.command == kLaunchRun) {
    launcher.hosts = read_hosts(table, file);
    launcher.command = kLaunchRun;
    launcher.arguments.clear();
  }
  launcher.ranks_option = table.text("ranks_option", launcher.ranks_option);
  launcher.arguments = table.texts("arguments", launcher.arguments);
  if (table.has("programs")) launcher.programs = fs::path(file).parent_path() / table.text("programs", "");
  return launcher;
}

struct Case {
  TomlTable table, options;
  std::string name, model, program;
  std::vector<std::string> words;
  std::vector<SweepRun> layouts;  // nodes and devices only
  std::vector<std::int64_t> batches;
  std::vector<std::string> precisions;
};

std::vector<SweepRun> named_layouts(const TomlTable& table) {
  std::vector<SweepRun> layouts;
  for (const std::string& name : table.required_texts("cases", {})) {
    SweepRun run;
    if (!parse_case_name(name, run.nodes, run.devices_per_node) || run.nodes < 1 || run.nodes > kMostNodes ||
        run.devices_per_node < 1 || run.devices_per_node > kMostDevices)
      table.refuse("cases",
                   fmt::format("'{}': expected a case; write 2n8g for 2 nodes of 8 devices each", name));
    layouts.push_back(run);
  }
  for (const char* key : {"nodes", "devices_per_node"})
    if (table.has(key))
      table.refuse(key, fmt::format("'{}' and 'cases' exclude each other; leave one of them out", key));
  return layouts;
}

// The fewest nodes with every number of devices, more nodes with the largest one: as a job grows.
std::vector<SweepRun> read_layouts(const TomlTable& table) {
  if (table.has("cases")) return named_layouts(table);
  const std::vector<std::int64_t> devices = table.required_integers("devices_per_node", {1, kMostDevices});
  std::vector<std::int64_t> nodes{1};
  if (table.has("nodes")) nodes = table.required_integers("nodes", {1, kMostNodes});
  const std::int64_t fewest = *std::ranges::min_element(nodes), most = *std::ranges::max_element(devices);
  std::vector<SweepRun> layouts;
  const auto add = [&](std::int64_t count, std::int64_t each) {
    layouts.push_back({.nodes = static_cast<int>(count), .devices_per_node = static_cast<int>(each)});
  };
  for (const std::int64_t each : devices) add(fewest, each);
  for (const std::int64_t count : nodes)
    if (count != fewest) add(count, most);
  return layouts;
}

// The key that says how many nodes, or devices, a case has.
const char* layout_key(const TomlTable& table, const char* key) {
  return table.has("cases") ? "cases" : key;
}

// Whether the launcher can start a case's runs.
void check_layouts(const Case& c, const SweepLauncher& launcher, const TomlTable& launcher_table,
                   const CheckLayout& check) {
  std::vector<std::string> program{c.program};
  program.insert(program.end(), c.words.begin(), c.words.end());
  for (const SweepRun& layout : c.layouts) {
    if (!launcher.hosts && layout.nodes > 1)
      c.table.refuse(layout_key(c.table, "nodes"),
                     fmt::format("{} needs {} hosts; list them in [launcher], as hosts = \"node[1-{}]\"",
                                 layout.case_name(), layout.nodes, layout.nodes));
    if (!launcher.hosts || !check) continue;
    try {
      check(launcher, layout.nodes, layout.devices_per_node, program);
    } catch (const Error& error) {
      if (error.code() != ExitCode::usage) throw;
      const std::string_view sentence = error.what();
      const std::string told = fmt::format("cannot run {}: {}", layout.case_name(), sentence);
      if (sentence.starts_with("--nodes")) c.table.refuse(layout_key(c.table, "nodes"), told);
      if (sentence.starts_with("--devices")) c.table.refuse(layout_key(c.table, "devices_per_node"), told);
      launcher_table.refuse(launcher_table.has("hosts") ? "hosts" : "hostfile", told);
    }
  }
}

Case read_case(const TomlTable& table) {
  table.refuse_others({"name", "model", "nodes", "devices_per_node", "cases", "batch_sizes", "precisions",
                       "iterations", "warmup", "options"});
  Case c{.table = table, .options = table.table("options")};
  c.name = table.text("name", "");
  for (const char letter : c.name)
    if (!std::isalnum(static_cast<unsigned char>(letter)) && letter != '-' && letter != '.')
      table.refuse(
          "name",
          fmt::format("name '{}' becomes part of file names; use letters, digits, '-' and '.'", c.name));
  if (c.name.starts_with('.'))
    table.refuse("name", fmt::format("name '{}' begins with '.'; remove the dot", c.name));
  std::vector<std::string> models;
  for (const Model& model : model_catalogue()) models.emplace_back(model.name);
  c.model = table.required_text("model", models);
  c.layouts = read_layouts(table);
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

// The groups of a case, checked by the program itself.
std::vector<SweepGroup> groups_of(const Case& c, const fs::path& programs, const CheckOptions& check) {
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
        group.length = check((programs / group.program).string(), group.options);
      } catch (const Error& error) {
        if (error.code() == ExitCode::unavailable) throw;  // there is no such program
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

SweepPlan read_sweep_plan(std::string_view text, const std::string& file, const CheckOptions& check,
                          const CheckLayout& check_layout) {
  const toml::table parsed = parse_toml(text, file);
  const TomlTable root(parsed, "", file);
  for (const auto& [key, value] : parsed)
    if (const std::string_view name = key.str(); name != "sweep" && name != "launcher" && name != "case")
      root.refuse(
          name, fmt::format("'{}' is not part of a sweep file; use [sweep], [launcher] and [[case]]", name));
  SweepPlan plan;
  const TomlTable sweep = root.table("sweep"), launcher = root.table("launcher");
  sweep.refuse_others({"repetitions", "seed", "retries", "timeout_minutes"});
  plan.repetitions = static_cast<int>(sweep.integer("repetitions", plan.repetitions, {1, 99}));
  plan.seed = static_cast<std::uint64_t>(sweep.integer("seed", 0, {}));
  plan.retries = static_cast<int>(sweep.integer("retries", plan.retries, {0, 100}));
  plan.timeout_seconds = 60 * sweep.real("timeout_minutes", plan.timeout_seconds / 60, 0, 1e6);
  plan.launcher = read_launcher(launcher, file);

  std::vector<SweepRun> cases;  // of one repetition
  std::set<std::string> names;
  for (const TomlTable& table : root.tables("case")) {
    const Case c = read_case(table);
    check_layouts(c, plan.launcher, launcher, check_layout);
    const std::size_t more = c.batches.size() * c.precisions.size() * c.layouts.size();
    if ((cases.size() + more) * static_cast<std::size_t>(plan.repetitions) > kMostRuns)
      table.refuse("", fmt::format("with this case the sweep has more than {} runs; leave out batch sizes, "
                                   "precisions or repetitions",
                                   kMostRuns));
    for (SweepGroup& group : groups_of(c, plan.launcher.programs, check)) {
      if (!names.insert(group.name).second)
        table.refuse("", group.name + " is the name of an earlier case; use another 'name'");
      for (SweepRun run : c.layouts) {
        run.group = plan.groups.size();
        cases.push_back(std::move(run));
      }
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

std::vector<std::string> hosts_words(const SweepLauncher& launcher, int nodes, int devices_per_node) {
  const SweepHosts& hosts = *launcher.hosts;
  std::vector<std::string> words{launcher.command};
  if (!hosts.list.empty()) words.insert(words.end(), {"-H", hosts.list});
  if (!hosts.file.empty()) words.insert(words.end(), {"--hostfile", hosts.file.string()});
  words.insert(words.end(),
               {"--nodes", std::to_string(nodes), "--devices", std::to_string(devices_per_node)});
  if (!hosts.via.empty()) words.insert(words.end(), {"--via", hosts.via});
  for (const std::string& word : launcher.arguments) words.insert(words.end(), {"--with", word});
  return words;
}

std::vector<std::string> command_of(const SweepPlan& plan, const SweepRun& run, const SweepFolder& folder) {
  const SweepGroup& group = plan.groups[run.group];
  const SweepLauncher& launcher = plan.launcher;
  std::vector<std::string> words;
  if (launcher.hosts) {
    words = hosts_words(launcher, run.nodes, run.devices_per_node);
  } else {
    words.push_back(launcher.command);
    words.insert(words.end(), launcher.arguments.begin(), launcher.arguments.end());
    words.insert(words.end(), {launcher.ranks_option, std::to_string(run.devices())});
  }
  words.push_back((launcher.programs / group.program).string());
  words.insert(words.end(), group.options.begin(), group.options.end());
  if (!launcher.hosts)  // else the hosts give the case its name
    words.insert(words.end(), {"--nodes=1", fmt::format("--devices-per-node={}", run.devices_per_node)});
  words.insert(words.end(),
               {fmt::format("--run={}", run.repetition), "--log-dir=" + folder.logs(group).string(),
                "--output=" + folder.work(run).string()});
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
  if (anywhere.launcher.hosts) anywhere.launcher.command = kLaunchRun;
  for (const SweepRun& run : anywhere.runs)
    hash = fnv1a(fmt::format("{}\n{}\n", run.name, shell_text(command_of(anywhere, run, {}))), hash);
  return hash;
}

}  // namespace plumb
