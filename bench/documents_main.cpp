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
                const std::vector<std::string>& synopsis, const std::string& others) {
  return {.name = table.program,
          .purpose = purpose,
          .synopsis = synopsis,
          .description = table.description,
          .tables = {table},
          .sections = {see_also(others)}};
}

void write_all(const Documents& documents) {
  for (const std::string_view program : programs_of()) {
    BenchOptions options = default_options(program);
    const OptionTable table = bench_option_table(options);
    const std::string usage = table.program + " [options]";
    documents.write_page(page_of(table, fmt::format("train {} and time every step", options.model->task),
                                 {usage, "mpirun -np 8 " + usage}, "plumbline(1), mpirun(1)"));
    documents.write_completions(table.program);
    documents.write_schema(table.program + "_config", config_schema(table));
  }
  AllreduceOptions allreduce;
  documents.write_page(page_of(allreduce_option_table(allreduce),
                               "time the collectives of training over its own communicators",
                               {fmt::format("mpirun -np 8 {} [options]", kAllreduceProgram)},
                               "bench_resnet50(1), plumbline(1), mpirun(1)"));
  documents.write_completions(kAllreduceProgram);
  documents.write_schema(
      "allreduce", json_schema<AllreduceReport>(kAllreduceSchema, "What bench_allreduce --json measured."));
  documents.write_schema("dry_run", dry_run_schema());
  documents.write_schema("targets", targets_schema());
  MakeRecArguments make_rec;
  documents.write_page(page_of(make_rec_options(make_rec),
                               "pack an image folder into a RecordIO file and its index",
                               {"make_rec FOLDER OUT"}, "bench_resnet50(1)"));
  documents.write_completions("make_rec");
}

}  // namespace

int main(int argc, char** argv) {
  return write_documents(argc, argv, write_all);
}
