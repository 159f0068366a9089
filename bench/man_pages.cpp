#include "bench/man_pages.h"

namespace plumb {

ManPage bench_man_page(const OptionTable& table, const std::string& purpose) {
  return {.name = table.program,
          .purpose = purpose,
          .synopsis = {table.program + " [options]", "mpirun -np 8 " + table.program + " [options]"},
          .description = table.description,
          .tables = {table},
          .sections = {
              {.title = "FILES",
               .paragraphs = {"logs/<N>n<G>g/<model>_b<BS>_<precision>_<K>.log: one line per iteration, of a "
                              "run on N nodes with G devices each. Until all checks have passed its name "
                              "ends in .part.",
                              "runs/<run>/: result.json (what was measured and proved), env.json (the "
                              "machine), program.json (the step as a list); with --profile profile.json, "
                              "with --trace trace.json."}},
              see_also("plumbline(1), mpirun(1)")}};
}

ManPage allreduce_man_page(const OptionTable& table) {
  return {.name = table.program,
          .purpose = "time the collectives of training over its own communicators",
          .synopsis = {"mpirun -np 8 " + table.program + " [options]"},
          .description = table.description,
          .tables = {table},
          .sections = {
              {.title = "FIGURES",
               .paragraphs = {"algbw is bytes / seconds; busbw is algbw times 2 (n - 1) / n for an allreduce "
                              "over n ranks, (n - 1) / n for allgather and reducescatter, 1 for a broadcast. "
                              "Seconds are the median over iterations, each as long as its slowest rank."}},
              see_also("bench_resnet50(1), plumbline(1), mpirun(1)")}};
}

ManPage make_rec_man_page(const OptionTable& table) {
  return {.name = table.program,
          .purpose = "pack an image folder into a RecordIO file and its index",
          .synopsis = {table.program + " FOLDER OUT"},
          .description = table.description,
          .tables = {table},
          .sections = {see_also("bench_resnet50(1)")}};
}

}  // namespace plumb
