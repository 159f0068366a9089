#include "bench/bench_main.h"

#include <cstdio>

#include "bench/answers.h"
#include "bench/run/environment.h"
#include "bench/run/failures.h"
#include "bench/run/find_max_batch.h"
#include "bench/run/training.h"

namespace plumb {

int run_bench(const std::string& program, int argc, char** argv) {
  ensure_short_openmp_waits(argv);
  return run_program(program, [&] {
    const BenchOptions options = parse_options(argc, argv, program);
    if (const auto answer = answer_without_running(program, options)) {
      if (launched_as().rank == 0) std::fputs(answer->c_str(), stdout);
      return;
    }
    const Job job(&argc, &argv);
    run_in_job(program, job,
               [&] { options.find_max_bs ? report_max_batch(job, options) : run_training(job, options); });
  });
}

}  // namespace plumb
