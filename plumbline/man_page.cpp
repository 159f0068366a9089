#include "plumbline/command.h"

namespace plumb {

ManPage plumbline_man_page(const std::vector<Command>& commands, const std::string& example_sweep) {
  ManPage page{.name = "plumbline",
               .purpose = "analyze training benchmarks, and judge the hosts that run them",
               .synopsis = {"plumbline COMMAND [options]", "plumbline COMMAND --help", "plumbline --version",
                            "plumbline --completions SHELL"},
               .description =
                   "Reads the logs and results of bench_resnet50, bench_arcface and other frameworks, and "
                   "judges hosts. Needs neither a GPU nor MPI, except for the runs that it starts."};
  for (const Command& command : commands) page.commands.push_back(command.table());
  page.sections = {
      {.title = "SWEEP FILES",
       .paragraphs = {"A [[case]] needs model, devices_per_node, batch_sizes and precisions. It may have a "
                      "name, iterations, warmup, and options of the program without dashes: options = { lr = "
                      "0.01, no-overlap = true }. [sweep] has repetitions (7), seed (0), retries (1) and "
                      "timeout_minutes (240; 0: none). [launcher] has command (mpirun), arguments (--bind-to "
                      "none), ranks_option (-np) and programs (the folder of plumbline)."},
       .example = example_sweep},
      see_also("bench_resnet50(1), bench_arcface(1), bench_allreduce(1), mpirun(1)")};
  return page;
}

}  // namespace plumb
