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
      "Where a framework loses: its profiler's trace sorted into what a step's time goes into, beside a run "
      "with --profile. The differences add up to the difference of the steps.",
      {{"Input",
        {positional("RUN", arguments.run, "run folder with result.json and profile.json").as_required(),
         text_option("--trace", "FILE", arguments.trace,
                     "trace in Chrome's format, by PyTorch's export_chrome_trace with step()")
             .as_required(),
         flag_option("--force", arguments.force, true, "also with another configuration, which is marked")}},
       {"Output",
        {flag_option("--json", arguments.json, true, "print one JSON object instead of the table")}}}};
}

int explain_command(const ExplainArguments& arguments) {
  const Explanation explanation = explain_run(arguments.run, arguments.trace);
  if (!explanation.differences.empty() && !arguments.force)
    throw Error(ExitCode::usage,
                "option --trace: {} is of another configuration than {}, {}; trace the same, or give --force",
                arguments.trace, arguments.run, differences_text(explanation.differences));
  print_text(arguments.json ? json_text(explanation_json(explanation)) : explanation_text(explanation));
  return 0;
}

}  // namespace

const Command kExplainCommand =
    make_command("explain", "where a framework's step loses time, by its profiler's trace", explain_options,
                 explain_command);

}  // namespace plumb
