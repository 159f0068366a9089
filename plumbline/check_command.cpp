// `plumbline check`: this host alone against what is expected of it, in seconds, for a scheduler's prolog.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/console/print.h"
#include "base/error.h"
#include "base/machine/host_addresses.h"
#include "base/output.h"
#include "base/steady_clock.h"
#include "base/text.h"
#include "launch/verdict/host_steps.h"
#include "plumbline/command.h"

namespace plumb {
namespace {

struct CheckArguments {
  std::string expect, exit_codes = "plumbline", program;
  double budget_seconds = 20;
  bool json = false, verbose = false;
};

OptionTable check_options(CheckArguments& arguments) {
  return {
      "plumbline check",
      "Judges this host alone by what plumbline accept --save-expect wrote: its settings, a short training "
      "on each device, and an allreduce between its GPUs. Exit code 0: pass; 1: fail; 2: can't tell.",
      {{"Input",
        {text_option("--expect", "FILE", arguments.expect,
                     "what this host should reach, written by accept --save-expect")
             .with_default(std::string(kExpectationFile)),
         text_option("--program", "PATH", arguments.program, "program that the devices run")
             .with_default("bench_resnet50 next to plumbline"),
         number_option("--budget", "S", arguments.budget_seconds, {.lowest = 4, .highest = 3600},
                       "seconds that all of it may take")}},
       {"Output",
        {choice_option(
             "--exit-codes", arguments.exit_codes, {"plumbline", "npd", "slurm"},
             "exit codes of pass, fail and can't tell\nplumbline, npd (Kubernetes' node problem detector): "
             "0, 1, 2\nslurm: 0, 1, 0, so that only a failure drains the node"),
         flag_option("--json", arguments.json, true, "print one JSON object instead of the lines"),
         flag_option("--verbose", arguments.verbose, true, "print the table of all checks too")}}},
      {"plumbline check # judge this host by /etc/plumbline/expect.json",
       "plumbline check --expect expect.json --verbose # show every check",
       "plumbline check --exit-codes slurm # in a Slurm prolog"}};
}

Verdict judge_this_host(const CheckArguments& arguments) {
  const double start = steady_seconds();
  HostSteps steps({.program = arguments.program}, Terminal{});
  const std::string file = arguments.expect.empty() ? kExpectationFile : arguments.expect;
  if (std::error_code error; !arguments.expect.empty() || fs::exists(file, error))
    steps.expectation = read_expectation(file);
  if (steps.expectation) steps.work.options = steps.expectation->options;
  // A run's start takes seconds of its own.
  steps.work.seconds = std::max(1.0, arguments.budget_seconds / 4);
  steps.work.run_timeout_seconds = std::max(arguments.budget_seconds, 30.0);
  steps.ask();
  steps.judge_facts();
  Verdict& verdict = steps.verdict;
  if (!steps.expectation)
    verdict.add({.check = "expectation",
                 .where = verdict.hosts,
                 .outcome = Outcome::unknown,
                 .remark = fmt::format("no {}: write it by plumbline accept --save-expect", file)});
  steps.judge_devices_once(steps.work.seconds);
  if (steps.expectation && steps.expectation->within_host_bytes_per_second)
    steps.judge_insides(arguments.budget_seconds);
  verdict.seconds = steady_seconds() - start;
  return verdict;
}

// A scheduler must not drain a host for a file that can't be read: with its exit codes that can't tell.
Verdict judged(const CheckArguments& arguments) {
  try {
    return judge_this_host(arguments);
  } catch (const Error& error) {
    if (arguments.exit_codes == "plumbline") throw;
    Verdict verdict{.hosts = {own_host()}, .began = utc_now()};
    verdict.add(
        {.check = "check", .where = verdict.hosts, .outcome = Outcome::unknown, .remark = error.what()});
    return verdict;
  }
}

int check_command(const CheckArguments& arguments) {
  const Verdict verdict = judged(arguments);
  const Outcome outcome = verdict.outcome();
  const std::string line = headline(verdict) + "\n";
  const bool passes_unknown = arguments.exit_codes == "slurm" && outcome == Outcome::unknown;
  if (passes_unknown) std::fputs(line.c_str(), stderr);
  if (arguments.json)
    print_text(json_text(verdict_json(verdict)));
  else
    print_text(line + (arguments.verbose ? verdict_text(verdict) : ""));
  return passes_unknown ? 0 : exit_code_of(outcome);
}

}  // namespace

const Command kCheckCommand =
    make_command("check", "judge this host: pass or fail, for a prolog", check_options, check_command);

}  // namespace plumb
