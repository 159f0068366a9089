// `plumbline explain`: a framework's profiler trace beside a run's own profile.
#include <string>

#include "base/console/print.h"
#include "base/error.h"
#include "plumbline/command.h"
#include "results/explain/explain.h"

namespace plumb {
namespace {

struct ExplainArguments {
  std::string run, trace;
  bool json = false, force = false;
};

OptionTable explain_options(ExplainArguments& arguments) {
  return {
      "plumbline explain",
      "Compares where the time of a step goes, in a framework's profiler trace and in a run with --profile. "
      "The differences add up to the difference of the steps.",
      {{"Input",
        {positional("RUN", arguments.run, "folder of a run with --profile").as_required(),
         text_option("--trace", "FILE", arguments.trace,
                     "trace of PyTorch's profiler, by export_chrome_trace with step()")
             .as_required(),
         flag_option("--force", arguments.force, true, "accept another configuration, and mark it")}},
       {"Output",
        {flag_option("--json", arguments.json, true, "print one JSON object instead of the table")}}},
      {"plumbline explain runs/RUN --trace pytorch.json # what takes longer in PyTorch?"}};
}

int explain_command(const ExplainArguments& arguments) {
  const Explanation explanation = explain_run(arguments.run, arguments.trace);
  if (!explanation.differences.empty() && !arguments.force)
    throw Error(ExitCode::usage,
                "--trace {}: it has another configuration than {}, {}; trace the same, or pass --force",
                arguments.trace, arguments.run, differences_text(explanation.differences));
  print_text(arguments.json ? json_text(explanation_json(explanation)) : explanation_text(explanation));
  return 0;
}

}  // namespace

const Command kExplainCommand = make_command("explain", "compare a step with a framework's profiler trace",
                                             explain_options, explain_command);

}  // namespace plumb
