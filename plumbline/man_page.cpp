#include "plumbline/command.h"

namespace plumb {

ManPage plumbline_man_page(const std::vector<Command>& commands, const std::string& example_sweep) {
  ManPage page{.name = "plumbline",
               .purpose = "analysis of training benchmarks: logs, results, and the files around them",
               .synopsis = {"plumbline COMMAND [options]", "plumbline COMMAND --help", "plumbline --version",
                            "plumbline --completions SHELL"},
               .description =
                   "Reads the logs and results of bench_resnet50, bench_arcface and of other frameworks. "
                   "Needs no GPU and no mpirun, but for what sweep starts."};
  for (const Command& command : commands) page.commands.push_back(command.table());
  page.sections = {
      {.title = "SWEEP FILES",
       .paragraphs =
           {"Of a sweep file's keys, [[case]] with model, devices_per_node, batch_sizes and precisions must "
            "be there. [sweep] has repetitions (7), seed (0), retries (1) and timeout_minutes (0: none); "
            "[launcher] has command (mpirun), arguments (--bind-to none), ranks_option (-np) and programs "
            "(the folder of bench_resnet50 and bench_arcface; that of plumbline). A case may have a name, "
            "iterations, warmup, and a table options with options of the program, without dashes in front: "
            "options = { lr = 0.01, no-overlap = true }."},
       .example = example_sweep},
      see_also("bench_resnet50(1), bench_arcface(1), bench_allreduce(1), mpirun(1)")};
  return page;
}

}  // namespace plumb
