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
          "Who was where when a run failed, in ten lines: what its result.json says, which rank ended first, "
          "where each rank was (phase, iteration, collective), and which ranks left no last words.",
          {{"Input",
            {positional(
                 "RUN", arguments.run,
                 "run folder with result.json and the ranks' rank_<N>.json; of a folder of runs the latest "
                 "that failed")
                 .as_required()}},
           {"Output",
            {flag_option("--json", arguments.json, true,
                         "print one JSON object, with the last 64 collectives of each rank")}}}};
}

int postmortem_command(const PostmortemArguments& arguments) {
  const Postmortem postmortem = read_postmortem(arguments.run);
  print_text(arguments.json ? json_text(postmortem_json(postmortem)) : postmortem_text(postmortem));
  return 0;
}

}  // namespace

const Command kPostmortemCommand =
    make_command("postmortem", "who was where when a run failed", postmortem_options, postmortem_command);

}  // namespace plumb
