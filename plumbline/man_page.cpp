#include "plumbline/command.h"

namespace plumb {

ManPage plumbline_man_page(const std::vector<Command>& commands) {
  ManPage page{.name = "plumbline",
               .purpose = "analyze training benchmarks, and judge the hosts that run them",
               .synopsis = {"plumbline COMMAND [options]", "plumbline COMMAND --help", "plumbline --version",
                            "plumbline --completions SHELL"},
               .description =
                   "Reads the logs and results of bench_resnet50, bench_arcface and other frameworks, and "
                   "judges hosts. Needs neither a GPU nor MPI, except for the runs that it starts."};
  for (const Command& command : commands) page.commands.push_back(command.table());
  page.sections = {see_also("bench_resnet50(1), bench_arcface(1), bench_allreduce(1), mpirun(1)")};
  return page;
}

}  // namespace plumb
