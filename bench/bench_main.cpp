#include "bench/bench_main.h"

#include "base/console/print.h"
#include "base/options/completions.h"
#include "base/process/this_process.h"
#include "bench/options/options.h"
#include "bench/run/environment.h"
#include "bench/run/run_program.h"
#include "bench/run/tasks.h"
#include "comm/launcher.h"

namespace plumb {

std::optional<std::string> answer_without_running(const std::string& program, const BenchOptions& options) {
  BenchOptions defaults = default_options(program, options.catalogue);
  if (auto answer = answer_to(options.questions, bench_option_table(defaults), options.json)) return answer;
  if (options.print_config) return json_text(options_json(options));
  if (options.list_targets) return answer_targets(options.json);
  if (options.dry_run) return answer_dry_run(options);
  return std::nullopt;
}

int run_bench(const std::string& program, int argc, char** argv, std::span<const Model> catalogue) {
  open_standard_descriptors();
  BenchOptions defaults = default_options(program, catalogue);
  if (const auto code = answer_to_shell(argc, argv, [&] { return bench_option_table(defaults); }))
    return *code;
  ensure_short_openmp_waits(argv);
  return run_program(program, [&] {
    const BenchOptions options = parse_options(argc, argv, program, catalogue);
    if (const auto answer = answer_without_running(program, options)) {
      if (launched_as().rank != 0) return;
      print_text(*answer);
      return;
    }
    run_job(program, {options.watch, options.probe, options.quiet}, &argc, &argv,
            [&](const Job& job, Interruption& interruption, Watchdog* watchdog) {
              run_training(job, options, {.interruption = interruption, .watchdog = watchdog});
            });
  });
}

}  // namespace plumb
