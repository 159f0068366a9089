// `plumbline postmortem`: who was where when a run failed.
#include <string>

#include "base/console/print.h"
#include "plumbline/command.h"
#include "results/postmortem/postmortem.h"

namespace plumb {
namespace {

struct PostmortemArguments {
  std::string run;
  bool json = false;
};

OptionTable postmortem_options(PostmortemArguments& arguments) {
  return {"plumbline postmortem",
          "Why a run failed, in ten lines: its error, the rank that ended first, and where each rank was.",
          {{"Input",
            {positional("RUN", arguments.run, "run folder, or a folder of runs for the latest that failed")
                 .as_required()}},
           {"Output",
            {flag_option("--json", arguments.json, true,
                         "print one JSON object, with the last 64 collectives of each rank")}}},
          {"plumbline postmortem runs # the latest failed run"}};
}

int postmortem_command(const PostmortemArguments& arguments) {
  const Postmortem postmortem = read_postmortem(arguments.run);
  print_text(arguments.json ? json_text(postmortem_json(postmortem)) : postmortem_text(postmortem));
  return 0;
}

}  // namespace

const Command kPostmortemCommand = make_command(
    "postmortem", "print why a run failed, and where each rank was", postmortem_options, postmortem_command);

}  // namespace plumb
