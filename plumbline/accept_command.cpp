// `plumbline accept`: its options.
#include "plumbline/acceptance.h"
#include "plumbline/command.h"

namespace plumb {
namespace {

OptionTable accept_options(AcceptArguments& arguments) {
  return {
      "plumbline accept",
      "Judges the hosts of a cluster: their settings, every device alone and all at once, every link, and "
      "how a training step scales. Exit code 0: pass; 1: fail; 2: can't tell; 69: no host could be measured.",
      {host_options(arguments.hosts),
       screen_work_options(arguments.work),
       {"Judgment",
        {text_option("--expect", "FILE", arguments.expect,
                     "what the hosts should reach, written by --save-expect"),
         text_option("--against", "DIR", arguments.against,
                     "compare devices, links and scaling with an earlier accept's --output"),
         text_option("--device", "h100=8500", arguments.device,
                     "images/s that a device with this word in its name should reach alone")
             .with_default("by --expect, else as such devices")
             .rare(),
         link_option(arguments.link).with_default("by --expect, else as other links"),
         number_option("--budget", "MIN", arguments.budget_minutes,
                       {.lowest = 0, .highest = 1440, .above_lowest = true},
                       "minutes that all of it may take")}},
       {"Output",
        {text_option("-o,--output", "DIR", arguments.output,
                     "new folder for report.html, accept.json, exclude.txt, links.json, …")
             .with_default("accept/<date and time>"),
         text_option("--save-expect", "FILE", arguments.save_expect,
                     "write what good hosts reached to this file, for --expect"),
         flag_option("--resume", arguments.resume, true, "go on in --output, and keep the runs that are done")
             .rare(),
         flag_option("--dry-run", arguments.dry_run, true,
                     "print the steps and their time, and start nothing"),
         flag_option("--json", arguments.json, true, "print accept.json instead of the table").rare(),
         flag_option("--quiet", arguments.quiet, true, "print the verdict only").rare()}}},
      {"plumbline accept -H node[1-4] --dry-run # what it would do, and how long it would take",
       "plumbline accept -H node[1-4] --save-expect expect.json # judge the hosts by each other",
       "plumbline accept --hostfile hosts --expect expect.json -- --bs 256 --fp16 # by what is expected"}};
}

}  // namespace

const Command kAcceptCommand =
    make_command("accept", "judge the hosts of a cluster: pass or fail", accept_options, accept_hosts);

}  // namespace plumb
