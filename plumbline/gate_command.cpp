// `plumbline gate`: exit code 1 where runs are slower than a baseline.
#include <filesystem>
#include <string>

#include "base/console/print.h"
#include "base/error.h"
#include "base/output.h"
#include "base/text.h"
#include "plumbline/command.h"
#include "results/analysis/analyze.h"
#include "results/compare/gate.h"
#include "results/compare/samples.h"

namespace plumb {
namespace {

struct GateArguments {
  GateCriteria criteria;
  AnalyzeOptions options;
  std::string run, baseline;
  Output junit{.option = "--junit", .path = ""};
  std::int64_t baseline_last = 0;
  bool markdown = false, json = false;
};

OptionTable gate_options(GateArguments& arguments) {
  return {
      "plumbline gate",
      "Compares runs with a baseline, case by case. Exit code 1: a case is significantly slower (one-sided "
      "Mann-Whitney test, 5 %) by more than --max-regression; 65: a case has fewer than 3 runs, or another "
      "configuration; 0: otherwise, also if the runs vary too much to tell.",
      {{"Input",
        {positional("RUN", arguments.run, "folder of runs or of logs").as_required(),
         text_option("--baseline", "BASE", arguments.baseline, "folder of runs or of logs to compare with")
             .as_required(),
         number_option("--baseline-last", "N", arguments.baseline_last, {1, 1'000'000},
                       "use only the N latest runs of each case in BASE that began before RUN's first")
             .with_default("all"),
         log_format_option(arguments.options.log_format).rare(),
         warmup_option(arguments.options.window).rare(), iterations_option(arguments.options.window).rare()}},
       {"Judgment",
        {percent_option("--max-regression", arguments.criteria.max_regression,
                        {.lowest = 0, .highest = 1, .below_highest = true}, "largest slow-down that passes"),
         flag_option("--allow-missing", arguments.criteria.allow_missing, true,
                     "ignore cases that RUN lacks")}},
       {"Output",
        {text_option("--junit", "FILE", arguments.junit.path,
                     "write the verdicts to a new file as JUnit XML; -: print only that"),
         flag_option("--overwrite", arguments.junit.overwrite, true, "replace FILE if it exists"),
         flag_option("--markdown", arguments.markdown, true, "print the table in Markdown"),
         flag_option("--json", arguments.json, true, "print one JSON object instead of the table")}}},
      {"plumbline gate runs/new --baseline runs/old # fail on a slow-down of over 2 %",
       "plumbline gate runs/new --baseline history --baseline-last 20 # against a history",
       "plumbline gate runs/new --baseline runs/old --junit gate.xml # for a CI server"}};
}

LoadedSamples load_side(const std::string& path, const AnalyzeOptions& options) {
  LoadedSamples loaded = load_samples({path}, options);
  print_messages(loaded.notes, loaded.bad, false);
  return loaded;
}

void say_what_else(const GateReport& report) {
  for (const std::string& note : report.notes) say(note);
  if (!report.only_new.empty())
    say(fmt::format("{} of RUN {} no baseline, first {}", counted(report.only_new.size(), "case"),
                    report.only_new.size() == 1 ? "has" : "have",
                    configuration_text(report.only_new.front())));
}

int gate_command(const GateArguments& arguments) {
  if (!arguments.junit.path.empty()) check_output(arguments.junit);
  std::error_code error;
  if (arguments.baseline_last == 0 && fs::equivalent(arguments.run, arguments.baseline, error))
    throw Error(ExitCode::usage, "RUN and --baseline are both '{}'; pass earlier runs as the baseline",
                printable(arguments.run));
  LoadedSamples baseline = load_side(arguments.baseline, arguments.options);
  const LoadedSamples runs = load_side(arguments.run, arguments.options);
  if (arguments.baseline_last > 0) {
    baseline.samples = latest_before(std::move(baseline.samples), runs.samples,
                                     static_cast<std::size_t>(arguments.baseline_last));
    if (baseline.samples.empty())
      throw Error(ExitCode::bad_data, "--baseline {}: no run began before RUN's first; pass an older history",
                  printable(arguments.baseline));
  }
  const GateReport report = gate(baseline.samples, runs.samples, arguments.criteria);
  if (!arguments.junit.path.empty()) write_output(arguments.junit, gate_junit(report));
  if (!arguments.junit.is_stdout())
    print_text(arguments.json       ? json_text(gate_json(report))
               : arguments.markdown ? gate_markdown(report)
                                    : gate_table(report));
  say_what_else(report);
  const ExitCode code = gate_exit_code(report);
  if (code == ExitCode::bad_data) throw Error(code, gate_summary(report));
  say(gate_summary(report));
  return static_cast<int>(code);
}

}  // namespace

const Command kGateCommand =
    make_command("gate", "exit with code 1 if runs are slower than a baseline", gate_options, gate_command);

}  // namespace plumb
