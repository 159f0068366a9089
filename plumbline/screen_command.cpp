// `plumbline screen`: every device alone, then all at once, with the same short work.
#include <cstdio>

#include "base/console/print.h"
#include "base/steady_clock.h"
#include "launch/verdict/host_steps.h"
#include "plumbline/command.h"

namespace plumb {
namespace {

struct ScreenArguments {
  HostArguments hosts;
  ScreenWork work;
  bool json = false;
};

OptionTable screen_options(ScreenArguments& arguments) {
  return {"plumbline screen",
          "Runs the same short training on every device alone, then on all at once, and finds the devices "
          "that are slow (5 % and 3.5 robust standard deviations more time per image than their kind) or "
          "compute other bits. Exit code 0: pass; 1: fail; 2: can't tell.",
          {host_options(arguments.hosts),
           screen_work_options(arguments.work),
           {"Output",
            {flag_option("--json", arguments.json, true, "print one JSON object instead of the table")}}},
          {"plumbline screen # the devices of this host", "plumbline screen -H node[1-4] # of a cluster",
           "plumbline screen -H node[1-4] --seconds 30 -- --bs 256 --fp16 # by your own work"}};
}

int screen_command(const ScreenArguments& arguments) {
  const double start = steady_seconds();
  HostSteps steps(arguments.work, terminal_of(stderr));
  if (const auto hosts = named_hosts(arguments.hosts); !hosts.empty())
    steps.set_hosts(arguments.hosts, hosts);
  steps.ask();
  steps.judge_facts();
  steps.judge_devices(arguments.work.seconds, true);
  steps.line.clear();
  Verdict& verdict = steps.verdict;
  verdict.seconds = steady_seconds() - start;
  print_text(arguments.json ? json_text(verdict_json(verdict)) : verdict_text(verdict));
  return exit_code_of(verdict.outcome());
}

}  // namespace

const Command kScreenCommand =
    make_command("screen", "find slow devices, alone and all at once", screen_options, screen_command);

}  // namespace plumb
