// `plumbline accept`: its options.
#include "plumbline/acceptance.h"
#include "plumbline/command.h"

namespace plumb {
namespace {

OptionTable accept_options(AcceptArguments& arguments) {
  return {
      "plumbline accept",
      "Judges the hosts of a cluster: their facts, every device alone and all at once, every link between "
      "hosts, and how a training step scales over them. A host that fails is left out of what follows. The "
      "first line is the verdict. Exit code 0: pass; 1: fail; 2: can't tell; 69: no host could be measured.",
      {host_options(arguments.hosts),
       screen_work_options(arguments.work),
       {"Judgement",
        {text_option("--expect", "FILE", arguments.expect,
                     "what an earlier accept measured: devices, links, number of GPUs"),
         text_option("--against", "DIR", arguments.against,
                     "--output of an earlier accept: compare devices and links with its expect.json, and "
                     "every case of the scaling step with its runs"),
         text_option("--device", "h100=8500", arguments.device,
                     "images/s that a device whose name has these words should reach alone")
             .with_default("by --expect, else the reference, else compared with each other"),
         link_option(arguments.link).with_default("by --expect, else compared with each other"),
         number_option("--budget", "MIN", arguments.budget_minutes,
                       {.lowest = 0, .highest = 1440, .above_lowest = true},
                       "minutes that it may take; decides how long and how often runs are")}},
       {"Output",
        {text_option(
             "-o,--output", "DIR", arguments.output,
             "new folder: accept.json, accept.txt, junit.xml, exclude.txt, plumbline.prom, links.json, "
             "expect.json, report.html, scaling/runs")
             .with_default("accept/<date and time>"),
         text_option("--save-expect", "FILE", arguments.save_expect,
                     "write what good hosts reached, for check and the next accept"),
         flag_option("--resume", arguments.resume, true,
                     "go on in --output: runs of the scaling step that are done are kept"),
         flag_option("--dry-run", arguments.dry_run, true, "print steps and time; start nothing on devices"),
         flag_option("--json", arguments.json, true, "print accept.json instead of the table"),
         flag_option("--quiet", arguments.quiet, true, "the verdict only")}}}};
}

}  // namespace

const Command kAcceptCommand = make_command(
    "accept", "hosts of a cluster: pass or fail, and what to leave out", accept_options, accept_hosts);

}  // namespace plumb
