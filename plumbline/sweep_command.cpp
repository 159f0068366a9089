// `plumbline sweep`: the runs of a sweep file, one after the other, and the table of them all.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include "base/console/messages.h"
#include "base/console/print.h"
#include "base/console/progress.h"
#include "base/error.h"
#include "base/steady_clock.h"
#include "base/units.h"
#include "base/whole_file.h"
#include "launch/programs.h"
#include "launch/sweep/sweep.h"
#include "launch/sweep/sweep_lock.h"
#include "plumbline/command.h"
#include "results/analysis/analyze.h"

namespace plumb {

extern const std::string_view kCpuSweep, kDlperfSweep, kDlperfHostsSweep;  // launch/sweeps/*.toml

namespace {

struct SweepArguments {
  std::string file, output;
  bool resume = false, dry_run = false, quiet = false;
};

OptionTable sweep_options(SweepArguments& arguments) {
  return {
      "plumbline sweep",
      "Runs all cases of a TOML file several times in shuffled order, through mpirun, srun or launch/run, "
      "and prints the table of plumbline analyze. A run that fails is tried again; --resume continues a "
      "sweep that was stopped.",
      {{"Input",
        {positional("FILE", arguments.file,
                    "sweep file, or an example: cpu, dlperf_resnet50, dlperf_resnet50_4_hosts")
             .as_required(),
         flag_option("--resume", arguments.resume, true,
                     "continue the sweep in --output: keep finished runs, try failed ones again"),
         flag_option("--dry-run", arguments.dry_run, true,
                     "print the commands in their order, and start nothing")}},
       {"Output",
        {text_option("-o,--output", "DIR", arguments.output,
                     "new folder for logs, runs, output, failed runs and sweep.json")
             .with_default("sweeps/<name of FILE>")
             .also_called("--out"),
         flag_option("--quiet", arguments.quiet, true, "print failures and results only").rare()}}},
      {"plumbline sweep cpu --dry-run # what an example would run",
       "plumbline sweep my.toml -o sweeps/monday # run a file of yours",
       "plumbline sweep my.toml -o sweeps/monday --resume # continue it"}};
}

// The program, a name or a path in the folder that the sweep file names, reads its options itself.
RunLength check_options(const fs::path& program, std::vector<std::string> arguments) {
  arguments.emplace_back("--print-config");
  const Json options =
      ask_engine(engine_program(program.filename().string(), program.parent_path()), arguments);
  if (!options.is_object() || options.at("dry_run") == true)
    throw Error(ExitCode::usage, "an option of the sweep asks for something else than a run; leave it out");
  if (options.at("save_weights") != "")
    throw Error(ExitCode::usage,
                "--save-weights: every run of the sweep would write the same file; leave it out");
  return {options.at("iterations"), options.at("warmup")};
}

// A file, or an example where there is no such file.
std::string read_sweep_file(const std::string& path) {
  // Examples have the names of their files in launch/sweeps.
  for (const auto& [name, example] : {std::pair("cpu", kCpuSweep), std::pair("dlperf_resnet50", kDlperfSweep),
                                      std::pair("dlperf_resnet50_4_hosts", kDlperfHostsSweep)})
    if (std::error_code error; path == name && fs::status(path, error).type() == fs::file_type::not_found)
      return std::string(example);
  return read_whole_file(
      path, {.remedy = "check its name, or pass an example: cpu, dlperf_resnet50, dlperf_resnet50_4_hosts",
             .name = fmt::format("sweep file {}", path),
             .most_bytes = 1 << 20});
}

// Groups that plumbline scaling can't judge, a line each.
std::string unjudged_text(const SweepPlan& plan) {
  std::string text;
  for (const SweepGroup& group : plan.groups)
    if (group.program.ends_with("bench_arcface") && std::ranges::count(group.options, "--head=dp") == 0)
      text += fmt::format(
          "plumbline scaling can't judge {}: ranks share out its class centers; add head = \"dp\"\n",
          group.name);
  return text;
}

// The runs of a dry run.
std::string plan_text(const SweepPlan& plan, const SweepFolder& folder, const SweepArguments& arguments) {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < plan.runs.size(); ++i)
    if (!arguments.resume || !is_done(plan, folder, plan.runs[i])) open.push_back(i);
  std::string text =
      fmt::format("{} runs to do, {} finished; {} repetitions, seed {}, up to {} retries\n", open.size(),
                  plan.runs.size() - open.size(), plan.repetitions, plan.seed, plan.retries);
  text += unjudged_text(plan);
  for (const std::size_t index : open) text += shell_text(command_of(plan, plan.runs[index], folder)) + "\n";
  return text;
}

// One table per configuration, and what failed.
std::string result_text(const SweepPlan& plan, const SweepFolder& folder, const SweepOutcome& outcome) {
  std::string text;
  std::set<std::string> measured;
  for (const SweepRun& run : plan.runs)
    if (std::error_code error; fs::exists(folder.log(plan, run), error))
      measured.insert(plan.groups[run.group].name);
  for (const SweepGroup& group : plan.groups) {
    if (!measured.contains(group.name)) continue;
    std::string table;
    try {
      const Analysis analysis = analyze_logs(
          folder.logs(group),
          {.log_format = "paddle_speed", .window = {group.length.iterations, group.length.warmup}});
      table = table_text(analysis);
      for (const std::string& message : message_lines(analysis.notes, analysis.bad, 0))
        table += message + "\n";
    } catch (const Error& error) {
      table = std::string(error.what()) + "\n";
    }
    text += fmt::format("{}{}\n{}", text.empty() ? "" : "\n", group.name, table);
  }
  if (!outcome.failed.empty()) text += (text.empty() ? "" : "\n") + std::string("Failed:\n");
  for (const FailedRun& run : outcome.failed)
    text += fmt::format("  {}: {}, code {}, {}\n", run.name, counted(run.failures, "attempt"), run.code,
                        run.reason);
  return text;
}

// `done`: runs that these seconds took.
std::string progress_text(const SweepProgress& progress, std::size_t done, double seconds) {
  const double each = seconds / static_cast<double>(done);
  const auto open = static_cast<double>(progress.total - progress.finished);
  return fmt::format("{}/{}  {}  {}{}", progress.finished, progress.total,
                     done > 0 ? rough_time_text(open * each) + " left" : "time unknown", progress.run,
                     progress.attempt > 1 ? fmt::format(", attempt {}", progress.attempt) : "");
}

int run_and_tell(const SweepPlan& plan, const SweepFolder& folder, const SweepIdentity& identity,
                 const SweepArguments& arguments) {
  const UniqueFd lock = claim_sweep_folder(folder.path, identity, arguments.resume);
  LiveLine line(stderr, arguments.quiet ? Terminal{} : terminal_of(stderr));
  Messages messages(stderr, terminal_of(stderr), arguments.quiet ? Loudness::quiet : Loudness::usual);
  const std::string again =
      fmt::format("plumbline sweep {} --resume --output {}", arguments.file, folder.path.string());
  std::optional<std::size_t> before;
  const double start = steady_seconds();
  const SweepListener listener{
      .progress =
          [&](const SweepProgress& progress) {
            if (!before) before = progress.finished;
            line.draw(progress_text(progress, progress.finished - *before, steady_seconds() - start));
          },
      .warn =
          [&](const std::string& sentence) {
            line.clear();
            messages.warn("plumbline: " + sentence);
          }};
  messages.say(fmt::format("plumbline: {} runs in {}", plan.runs.size(), folder.path.string()));
  const SweepOutcome outcome = run_sweep(plan, folder, listener);
  line.clear();
  print_text(result_text(plan, folder, outcome));
  messages.last(
      fmt::format("plumbline: {} of {} runs finished, {} failed; {}", outcome.finished, outcome.total,
                  outcome.failed.size(),
                  outcome.finished == outcome.total
                      ? fmt::format("results are in {0}; plumbline report {0} -o report.html judges them",
                                    folder.path.string())
                      : again + " goes on"));
  return exit_code_of(outcome);
}

int sweep_command(const SweepArguments& arguments) {
  const std::string text = read_sweep_file(arguments.file);
  SweepPlan plan = read_sweep_plan(text, arguments.file, check_options);
  if (plan.launcher.hosts) {
    plan.launcher.command = find_launch_run();
    check_hosts(plan, arguments.file);
  }
  if (plan.launcher.programs.empty())
    plan.launcher.programs = fs::path(engine_program(plan.groups.front().program)).parent_path();
  const fs::path name = fs::path(arguments.file).stem();
  const SweepFolder folder{arguments.output.empty() ? fs::path("sweeps") / name : fs::path(arguments.output)};
  if (arguments.dry_run) {
    print_text(plan_text(plan, folder, arguments));
    return 0;
  }
  const SweepIdentity identity{
      .plan = plan_hash(plan), .build = build_hash(plan), .file = arguments.file, .toml = text};
  return run_and_tell(plan, folder, identity, arguments);
}

}  // namespace

const Command kSweepCommand = make_command("sweep", "run the cases of a sweep file, and print their table",
                                           sweep_options, sweep_command);

}  // namespace plumb
