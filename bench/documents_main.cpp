// bench_documents FOLDER: writes the manual pages and completions of the programs that train, and the schemas
// of what they print.
#include <string>
#include <string_view>
#include <vector>

#include "base/options/documents.h"
#include "bench/allreduce/allreduce_report.h"
#include "bench/make_rec.h"
#include "bench/options/options.h"
#include "bench/run/tasks.h"

namespace {

using namespace plumb;

ManPage page_of(const OptionTable& table, const std::string& purpose,
                const std::vector<std::string>& synopsis, const std::vector<ManSection>& sections) {
  return {.name = table.program,
          .purpose = purpose,
          .synopsis = synopsis,
          .description = table.description,
          .tables = {table},
          .sections = sections};
}

ManSection files_of_a_run() {
  return {
      .title = "FILES",
      .paragraphs = {"logs/<N>n<G>g/<model>_b<BS>_<precision>_<K>.log: one line per iteration, of a run on "
                     "N nodes with G devices each. Until all checks have passed its name ends in .part.",
                     "runs/<run>/: result.json (what was measured and proved), env.json (the machine), "
                     "program.json (the step as a list); with --profile profile.json, with --trace "
                     "trace.json."}};
}

ManSection figures_of_allreduce() {
  return {.title = "FIGURES",
          .paragraphs = {"algbw is bytes / seconds; busbw is algbw times 2 (n - 1) / n for an allreduce over "
                         "n ranks, (n - 1) / n for allgather and reducescatter, 1 for a broadcast. Seconds "
                         "are the median over iterations, each as long as its slowest rank."}};
}

void write_all(const Documents& documents) {
  for (const std::string_view program : programs_of()) {
    BenchOptions options = default_options(program);
    const OptionTable table = bench_option_table(options);
    const std::string usage = table.program + " [options]";
    documents.write_page(page_of(table, fmt::format("train {} and time every step", options.model->task),
                                 {usage, "mpirun -np 8 " + usage},
                                 {files_of_a_run(), see_also("plumbline(1), mpirun(1)")}));
    documents.write_completions(table.program);
    documents.write_schema(table.program + "_config", config_schema(table));
  }
  AllreduceOptions allreduce;
  documents.write_page(page_of(
      allreduce_option_table(allreduce), "time the collectives of training over its own communicators",
      {fmt::format("mpirun -np 8 {} [options]", kAllreduceProgram)},
      {figures_of_allreduce(), see_also("bench_resnet50(1), plumbline(1), mpirun(1)")}));
  documents.write_completions(kAllreduceProgram);
  documents.write_schema(
      "allreduce", json_schema<AllreduceReport>(kAllreduceSchema, "What bench_allreduce --json measured."));
  documents.write_schema("dry_run", dry_run_schema());
  documents.write_schema("targets", targets_schema());
  MakeRecArguments make_rec;
  documents.write_page(page_of(make_rec_options(make_rec),
                               "pack an image folder into a RecordIO file and its index",
                               {"make_rec FOLDER OUT"}, {see_also("bench_resnet50(1)")}));
  documents.write_completions("make_rec");
}

}  // namespace

int main(int argc, char** argv) {
  return write_documents(argc, argv, write_all);
}
