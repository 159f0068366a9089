// bench_documents FOLDER: writes the manual pages and completions of the programs that train, and the schemas
// of what they print.
#include <string>
#include <string_view>

#include "base/options/documents.h"
#include "bench/allreduce/allreduce_report.h"
#include "bench/make_rec.h"
#include "bench/man_pages.h"
#include "bench/options/options.h"
#include "bench/plan/dry_run.h"
#include "bench/run/decode_rate.h"
#include "bench/run/find_max_batch.h"

int main(int argc, char** argv) {
  using namespace plumb;
  return write_documents(argc, argv, [](const Documents& documents) {
    for (const std::string_view program : programs_of()) {
      BenchOptions options = default_options(program);
      const OptionTable table = bench_option_table(options);
      documents.write_page(
          bench_man_page(table, "train " + std::string(options.model->task) + " and time every step"));
      documents.write_completions(table.program);
      documents.write_schema(std::string(program) + "_config", config_schema(table));
    }
    AllreduceOptions allreduce;
    documents.write_page(allreduce_man_page(allreduce_option_table(allreduce)));
    documents.write_completions(kAllreduceProgram);
    documents.write_schema(
        "allreduce", json_schema<AllreduceReport>(kAllreduceSchema, "What bench_allreduce --json measured."));
    documents.write_schema("decode", json_schema<DecodeRate>(
                                         kDecodeSchema, "How fast images are loaded: --decode-only --json."));
    documents.write_schema("dry_run", dry_run_schema());
    documents.write_schema(
        "max_batch",
        json_schema<MaxBatch>(kMaxBatchSchema, "The largest batch that runs: --find-max-bs --json."));
    documents.write_schema("targets", targets_schema());
    MakeRecArguments make_rec;
    documents.write_page(make_rec_man_page(make_rec_options(make_rec)));
    documents.write_completions("make_rec");
  });
}
