#include "launch/sweep/sweep_plan.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "launch/sweep/sweep_file.h"
#include "models/catalogue.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostRuns = 100'000;

[[noreturn]] void refuse_case(const std::string& file, std::size_t index, const std::string& sentence) {
  throw Error(ExitCode::bad_data, "{}: case[{}]: {}", file, index, sentence);
}

// The table `options` as words of a command line, sorted by name as TOML tables are.
std::vector<std::string> option_words(const Json& options) {
  std::vector<std::string> words;
  for (const auto& [name, value] : options.items()) {
    if (value.is_boolean())
      words.push_back("--" + name);
    else if (value.is_number_float())
      words.push_back(fmt::format("--{}={}", name, value.get<double>()));  // the fewest digits
    else
      words.push_back(
          fmt::format("--{}={}", name, value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return words;
}

SweepLauncher launcher_of(const LauncherTable& table, const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  SweepLauncher launcher;
  launcher.command = table.command.value_or(launcher.command);
  if (table.is_over_hosts()) {
    launcher.hosts = SweepHosts{.list = table.hosts.value_or("")};
    if (table.hostfile) launcher.hosts->file = folder / *table.hostfile;
    if (table.command && table.command != kLaunchRun) launcher.hosts->via = *table.command;
    launcher.command = kLaunchRun;
    launcher.arguments.clear();
  }
  launcher.arguments = table.arguments.value_or(launcher.arguments);
  if (table.programs) launcher.programs = folder / *table.programs;
  return launcher;
}

struct Case {
  const CaseTable& table;
  std::string program;
  std::vector<std::string> words;
  std::vector<SweepRun> layouts;  // nodes and devices only
};

// The fewest nodes with every number of devices, more nodes with the largest one: as a job grows.
std::vector<SweepRun> layouts_of(const CaseTable& table) {
  const std::int64_t fewest = std::ranges::min(table.nodes), most = std::ranges::max(table.devices_per_node);
  std::vector<SweepRun> layouts;
  const auto add = [&](std::int64_t count, std::int64_t each) {
    layouts.push_back({.nodes = static_cast<int>(count), .devices_per_node = static_cast<int>(each)});
  };
  for (const std::int64_t each : table.devices_per_node) add(fewest, each);
  for (const std::int64_t count : table.nodes)
    if (count != fewest) add(count, most);
  return layouts;
}

Case case_of(const CaseTable& table) {
  const Model& model = *find_model(table.model);
  Case c{.table = table, .program = std::string(model.program), .layouts = layouts_of(table)};
  if (models_of(model.program).size() > 1)
    c.words.push_back(fmt::format("{}={}", model_option(model), table.model));
  if (table.iterations) c.words.push_back(fmt::format("--iters={}", *table.iterations));
  if (table.warmup) c.words.push_back(fmt::format("--warmup={}", *table.warmup));
  for (std::string& word : option_words(table.options)) c.words.push_back(std::move(word));
  return c;
}

// The groups of a case, whose options the program itself checks.
std::vector<SweepGroup> groups_of(const Case& c, const fs::path& programs, const CheckOptions& check) {
  const CaseTable& table = c.table;
  std::vector<SweepGroup> groups;
  for (const std::int64_t batch : table.batch_sizes)
    for (const std::string& precision : table.precisions) {
      SweepGroup group{.name = fmt::format("{}{}{}_b{}_{}", table.name, table.name.empty() ? "" : "_",
                                           table.model, batch, precision),
                       .program = c.program,
                       .model = table.model,
                       .precision = precision,
                       .batch_per_device = batch,
                       .options = {fmt::format("--bs={}", batch), "--" + precision}};
      group.options.insert(group.options.end(), c.words.begin(), c.words.end());
      group.length = check((programs / group.program).string(), group.options);
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
  const SweepFile sweep = read_sweep_file(text, file);
  SweepPlan plan{.repetitions = sweep.sweep.repetitions,
                 .seed = static_cast<std::uint64_t>(sweep.sweep.seed),
                 .retries = sweep.sweep.retries,
                 .timeout_seconds = 60 * sweep.sweep.timeout_minutes,
                 .launcher = launcher_of(sweep.launcher, file)};
  std::vector<SweepRun> cases;  // of one repetition
  std::set<std::string> names;
  for (std::size_t index = 0; index < sweep.cases.size(); ++index) {
    const Case c = case_of(sweep.cases[index]);
    const SweepRun& most = *std::ranges::max_element(c.layouts, {}, &SweepRun::nodes);
    if (most.nodes > 1 && !plan.launcher.hosts)
      refuse_case(file, index,
                  fmt::format("{} needs {} hosts; list them in [launcher], as hosts = \"node[1-{}]\"",
                              most.case_name(), most.nodes, most.nodes));
    const std::size_t more = c.table.batch_sizes.size() * c.table.precisions.size() * c.layouts.size();
    if ((cases.size() + more) * static_cast<std::size_t>(plan.repetitions) > kMostRuns)
      refuse_case(file, index,
                  fmt::format("with it the sweep has more than {} runs; leave out batch sizes, precisions or "
                              "repetitions",
                              kMostRuns));
    std::vector<SweepGroup> groups;
    try {
      groups = groups_of(c, plan.launcher.programs, check);
    } catch (const Error& error) {
      if (error.code() == ExitCode::unavailable)
        throw;  // the program is missing, so the case is not at fault
      refuse_case(file, index, error.what());
    }
    for (SweepGroup& group : groups) {
      if (!names.insert(group.name).second)
        refuse_case(file, index, group.name + " is the name of an earlier case; use another 'name'");
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
    words.insert(words.end(), {fs::path(launcher.command).filename() == "srun" ? "-n" : "-np",
                               std::to_string(run.devices())});
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

std::string plan_hash(const SweepPlan& plan) {
  std::uint64_t hash = kFnvOffset;
  SweepPlan anywhere = plan;  // the programs may have moved
  anywhere.launcher.programs.clear();
  if (anywhere.launcher.hosts) anywhere.launcher.command = kLaunchRun;
  for (const SweepRun& run : anywhere.runs)
    hash = fnv1a(fmt::format("{}\n{}\n", run.name, shell_text(command_of(anywhere, run, {}))), hash);
  return fmt::format("{:016x}", hash);
}

}  // namespace plumb
