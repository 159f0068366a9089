#include <algorithm>
#include <ctime>

#include "base/console/print.h"
#include "base/paths.h"
#include "base/steady_clock.h"
#include "base/text.h"
#include "bench/run/run_record.h"
#include "bench/run/stages.h"
#include "bench/run/tasks.h"

namespace plumb {
namespace {

// CPU time of the whole process so far.
double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

DecodeRate measure_rate(const DescribedStep& step) {
  const Job& job = step.job;
  const BenchOptions& options = step.options;
  BatchSource& source = *step.source;
  job.barrier();
  job.enter_phase(RunPhase::measuring);
  double start = 0, cpu_start = 0, elapsed = 0, cpu = 0;
  // A failure of one rank is every rank's.
  job.together([&] {
    for (std::int64_t i = 0; i < options.iterations; ++i) {
      if (i == options.warmup) start = steady_seconds(), cpu_start = cpu_seconds();
      source.next();
    }
    elapsed = steady_seconds() - start;
    cpu = cpu_seconds() - cpu_start;
  });
  const std::vector<double> windows = job.gather({elapsed});
  const auto mine = static_cast<double>((options.iterations - options.warmup) * *options.batch_per_device);
  const std::vector<double> sums = job.sum({mine, cpu, static_cast<double>(options.data_workers)});
  return {.data = source.description(),
          .image_size = options.image_size,
          .batch_per_device = *options.batch_per_device,
          .world_size = job.size(),
          .workers = static_cast<std::int64_t>(sums[2]),
          .images = static_cast<std::int64_t>(sums[0]),
          .seconds = windows.empty() ? elapsed : std::ranges::max(windows),
          .cpu_seconds = sums[1],
          .corrupt = corrupt_of_all_ranks(job, source)};
}

}  // namespace

void report_decode_rate(const Job& job, const BenchOptions& options) {
  const DecodeRate rate = measure_rate(DescribedStep{ResolvedRun(job, options)});
  if (job.rank() != 0) return;
  print_text(options.json ? json_text(document_json(kDecodeSchema, rate)) : to_text(rate) + "\n");
}

std::string to_text(const DecodeRate& rate) {
  std::string text = fmt::format(
      "{:.0f} images/s, {:.0f} per core, {} ms of CPU time each: {} on {}, {} px", rate.images_per_second(),
      rate.images_per_core_second(), fmt::format("{:.3f}", 1e3 / rate.images_per_core_second()),
      counted(rate.workers, "worker"), counted(rate.world_size, "rank"), rate.image_size);
  text += fmt::format("; {}", rate.data);
  if (!rate.corrupt.first.empty()) text += "; " + printable(corrupt_text(rate.corrupt));
  return text;
}

}  // namespace plumb
